"""Fitting a profile again from the samples it keeps."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from calibrate.fit.calibration import stored_sample
from calibrate.samples import Sample, Settings, StoredSample
from model.errors import InputError

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


PASS: Settings = (
    *(("hidden", 64), ("intermediate", 64), ("query_heads", 1), ("kv_heads", 1)),
    *(("head_dim", 64), ("vocab", 64), ("layers", 2), ("rows", 1), ("context", 8)),
)
LINEAR: Settings = (("format", "4bit"), ("depth", 64), ("columns", 64), ("rows", 1))
WHOLE = replace(SAMPLE, settings=LINEAR)


def test_a_whole_sample_is_taken_as_it_is() -> None:
    assert stored_sample(asdict(StoredSample.of(WHOLE)), "p") == WHOLE


@pytest.mark.parametrize(
    ("sample", "wrong"),
    [
        (replace(WHOLE, seconds=0.0), "has no timing"),
        (replace(WHOLE, spread=-1.0), "has no timing"),
        (replace(WHOLE, repeats=0), "has no timing"),
        (replace(WHOLE, settings=LINEAR[:3]), "lacks a count"),
        (replace(WHOLE, settings=(*LINEAR[:3], ("rows", 0))), "lacks a count"),
        (replace(WHOLE, settings=(*LINEAR[:3], ("rows", "few"))), "lacks a count"),
        (replace(WHOLE, settings=LINEAR[1:]), "lacks its format"),
        (replace(WHOLE, probe="attention"), "lacks a count"),
        (replace(WHOLE, probe="layers", settings=PASS), "lacks its format"),
        (replace(WHOLE, probe="host", settings=(*PASS, ("format", "4bit"))), "lacks its mode"),
    ],
)
def test_a_damaged_sample_is_named(sample: Sample, wrong: str) -> None:
    with pytest.raises(InputError, match=rf"p: samples\[3\]: {wrong}"):
        stored_sample(asdict(StoredSample.of(sample)), "p: samples[3]")
