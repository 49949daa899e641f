"""Fitting a profile again from the samples it keeps."""

from __future__ import annotations

import pytest

from calibrate.samples import Sample, StoredSample

SAMPLE = Sample(
    probe="linear",
    settings=(("format", "4bit"), ("depth", 4096), ("rows", 5)),
    seconds=1.5e-4,
    spread=0.01,
    repeats=6,
    at=3.25,
    doubling=None,
    link_s=2e-6,
)


def test_a_stored_sample_comes_back_as_it_was() -> None:
    stored = StoredSample.of(SAMPLE)
    assert stored.settings == "format=4bit depth=4096 rows=5"
    assert stored.sample == SAMPLE


def test_settings_keep_their_kind() -> None:
    sample = StoredSample.of(SAMPLE).sample
    assert sample.number("rows") == 5
    assert sample.text("format") == "4bit"
    with pytest.raises(KeyError):
        sample.number("columns")
