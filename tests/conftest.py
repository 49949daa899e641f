"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing on a machine that does other work; benchmarks time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
