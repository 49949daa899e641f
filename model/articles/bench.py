"""The machine on which claims are re-examined, under the MLX of the articles' day and a later one.

The articles' laptop is a fanless 15-inch M3 with 16 GB, which has 10 GPU cores, under mlx-lm
0.31.3. The newest MLX on the second article's day was 0.31.2. Context lengths are not stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.articles.claim import Setting
from model.errors import InputError
from model.machine.kernels.runtime_change import as_runtime
from model.machine.profile import Profile
from model.machine.profile_store import DEFAULT_MACHINE, named_profile
from model.network.checkpoint import Checkpoint
from model.network.target import load_target

ARTICLE_RUNTIME = "mlx-0.31"
LATER_RUNTIME = "mlx-0.32"
CONTRAST = "h200-mlx-0.32.4"
"""A machine of the other kind: bound by decoding weights at one row, not by reading them."""

CONTEXT = 512.0
"""Tokens in the cache where an article does not say; short prompts and answers of some hundred."""

TARGET, DRAFT = "llama-3.1-8b", "llama-3.2-1b"
"""An 8B and a 1B of one vocabulary; the articles do not name theirs."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One machine under one runtime or two, the older first, and perhaps another to compare."""

    profiles: tuple[Profile, ...]
    contrast: Profile | None

    @property
    def is_own(self) -> bool:
        """Whether it is the articles' own machine, so that what else it did is of interest."""
        return self.then.header.name == DEFAULT_MACHINE

    @property
    def then(self) -> Profile:
        """The machine under the runtime of the articles, where its tables cover that."""
        return self.profiles[0]

    @property
    def now(self) -> Profile:
        """The machine under the later runtime."""
        return self.profiles[-1]

    @property
    def machines(self) -> tuple[Profile, ...]:
        """The machine, and the one to compare with."""
        return (self.now,) if self.contrast is None else (self.now, self.contrast)

    def setting(
        self, weight_format: str, *assumed: str, target: str = TARGET, draft: str | None = None
    ) -> Setting:
        """The setting of a claim on this machine at the articles' runtime."""
        header = self.then.header
        return Setting(
            target=target,
            draft=draft,
            format=weight_format,
            machine=header.chip,
            runtime=header.runtime,
            context=CONTEXT,
            assumed=assumed,
        )


def article_bench(machine: Profile | None = None) -> Bench:
    """The articles' own machine beside the one to compare with, or `machine` alone."""
    profile = named_profile(DEFAULT_MACHINE) if machine is None else machine
    contrast = named_profile(CONTRAST) if machine is None else None
    try:
        profiles = (as_runtime(profile, ARTICLE_RUNTIME), as_runtime(profile, LATER_RUNTIME))
    except InputError:  # no table covers the machine: it is what it was measured with
        profiles = (profile,)
    return Bench(profiles=profiles, contrast=contrast)


def loaded(profile: Profile, name: str, weight_format: str) -> Checkpoint:
    """A checkpoint as the machine of a profile holds it."""
    return profile.machine.as_run(load_target(name, weight_format))
