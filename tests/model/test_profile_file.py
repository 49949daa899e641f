"""Profile files: whole round trips, and every kind of damage named in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.catalog import packaged_profile_names, packaged_profile_text
from model.errors import InputError
from model.profile_file import profile_from_json, profile_to_json, read_profile, write_profile

PACKAGED = packaged_profile_names()


def document() -> dict[str, Any]:
    return json.loads(packaged_profile_text("m3-10core-16gb"))


def damaged(change: Callable[[dict[str, Any]], object]) -> str:
    whole = document()
    change(whole)
    return json.dumps(whole)


@pytest.mark.parametrize("name", PACKAGED)
def test_packaged_profiles_read_and_have_common_draws(name: str) -> None:
    profile = profile_from_json(packaged_profile_text(name), name)
    lengths = {len(constant.draws) for constant in profile.constants.values()}
    assert len(lengths) == 1
    assert profile.name == name


def test_a_profile_survives_writing_and_reading(tmp_path: Path) -> None:
    profile = profile_from_json(json.dumps(document()), "m3")
    path = tmp_path / "deep" / "copy.json"
    write_profile(profile, path)
    again = read_profile(path)
    assert again.laws == profile.laws
    assert again.constants.keys() == profile.constants.keys()
    for name, constant in profile.constants.items():
        assert again.constants[name].value == constant.value
        np.testing.assert_allclose(again.constants[name].draws, constant.draws, rtol=1e-5)
    assert [each.name for each in path.parent.iterdir()] == ["copy.json"]


def test_draws_of_a_stated_constant_have_its_error_and_are_the_same_every_time() -> None:
    one, two = (profile_from_json(json.dumps(document()), "m3") for _ in range(2))
    sync = one.constants["sync_s"]
    np.testing.assert_array_equal(sync.draws, two.constants["sync_s"].draws)
    assert float(np.std(sync.draws)) == pytest.approx(sync.stderr, rel=0.2)


def test_a_truncated_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "half.json"
    path.write_text(packaged_profile_text("m3-10core-16gb")[:700])
    with pytest.raises(InputError, match=r"half\.json: is not whole JSON") as refusal:
        read_profile(path)
    assert "\n" not in str(refusal.value)


def without(*names: str) -> Callable[[dict[str, Any]], object]:
    def change(whole: dict[str, Any]) -> None:
        inner = whole
        for name in names[:-1]:
            inner = inner[name]
        del inner[names[-1]]

    return change


def with_value(value: object, *names: str | int) -> Callable[[dict[str, Any]], object]:
    def change(whole: dict[str, Any]) -> None:
        inner: Any = whole
        for name in names[:-1]:
            inner = inner[name]
        inner[names[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (with_value(2, "schema"), r"p: schema 2: is newer than this tokroof reads \(1\)"),
        (without("schema"), "p: schema: is None"),
        (with_value("one", "schema"), "p: schema: is 'one'"),
        (without("memory_bytes"), "p: memory_bytes: is missing"),
        (with_value("16", "memory_bytes"), "p: memory_bytes: is '16'"),
        (without("constants", "sync_s"), r"p: constants\.sync_s: is missing"),
        (with_value(float("nan"), "constants", "sync_s", "value"), r"constants\.sync_s: value: is"),
        (with_value(-1.0, "constants", "sync_s", "value"), r"constants\.sync_s: is negative"),
        (with_value("guess", "constants", "sync_s", "origin"), "is 'guess'"),
        (with_value([], "laws"), "p: laws: is empty"),
        (with_value(2, "laws", 0, "regimes", 0, "first_row"), r"has regimes from rows \[2, 13\]"),
        (with_value("round", "laws", 0, "shape"), "law affine.round: has an unknown shape"),
        (with_value(0.5, "laws", 0, "overlap"), "has an overlap below 1"),
        (with_value(0.0, "laws", 0, "regimes", 0, "tile_rows"), "has a tile below one row"),
        (with_value({}, "constants"), "p: constants: is missing or empty"),
        (with_value(1, "surprise"), "p: surprise: is not a field"),
    ],
)
def test_damage_is_named(change: Callable[[dict[str, Any]], object], line: str) -> None:
    with pytest.raises(InputError, match=line) as refusal:
        profile_from_json(damaged(change), "p")
    assert "\n" not in str(refusal.value)


def test_a_regime_without_any_rate_is_refused() -> None:
    whole = document()
    for rate in ("bandwidth_bytes_per_s", "flops_per_s"):
        del whole["constants"][f"affine.wide.1.{rate}"]
    with pytest.raises(InputError, match="gives no rate above 0"):
        profile_from_json(json.dumps(whole), "p")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    profile = profile_from_json(json.dumps(document()), "m3")
    write_profile(profile, path)
    before = path.read_text()
    object.__setattr__(profile, "residual_log", float("nan"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_profile(profile, path)
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["p.json"]
    assert profile_to_json(read_profile(path)) == before
