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
from model.machine.kernels.gpu import Gpu
from model.machine.profile import seeded_draws
from model.machine.profile_file import (
    profile_from_json,
    profile_to_json,
    read_profile,
    write_profile,
)

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
    assert profile.header.name == name


def test_a_profile_survives_writing_and_reading(tmp_path: Path) -> None:
    profile = profile_from_json(json.dumps(document()), "m3")
    path = tmp_path / "deep" / "copy.json"
    write_profile(profile, path)
    again = read_profile(path)
    assert again.header.laws == profile.header.laws
    assert again.constants.keys() == profile.constants.keys()
    for name, constant in profile.constants.items():
        assert again.constants[name].value == constant.value
        np.testing.assert_allclose(again.constants[name].draws, constant.draws, rtol=1e-5)
    assert [each.name for each in path.parent.iterdir()] == ["copy.json"]


def test_the_width_of_several_rows_is_kept_and_left_out_where_there_is_none() -> None:
    whole = document()
    whole.pop("several_rows_residual_log", None)
    without = profile_from_json(json.dumps(whole), "m3")
    assert without.header.several_rows_residual_log == 0.0
    assert "several_rows_residual_log" not in json.loads(profile_to_json(without))
    stated = json.dumps(whole | {"several_rows_residual_log": 0.1})
    text = profile_to_json(profile_from_json(stated, "m3"))
    assert json.loads(text)["several_rows_residual_log"] == 0.1


def test_a_profile_without_the_optional_fields_reads_and_writes_as_before() -> None:
    whole = document()
    del whole["gpu"], whole["constants"]["sustained_share"]
    older = profile_from_json(json.dumps(whole), "older")
    assert older.header.gpu is None
    assert older.machine.dispatch is None
    assert older.machine.sustained() is None
    assert '"gpu"' not in profile_to_json(older)
    assert profile_from_json(profile_to_json(older), "again").header == older.header


def test_a_profile_keeps_its_gpu_and_sustained_share() -> None:
    profile = profile_from_json(json.dumps(document()), "m3")
    again = profile_from_json(profile_to_json(profile), "again")
    assert again.header.gpu == Gpu(generation=15, size="g", cores=10)
    assert again.constants["sustained_share"].value == 0.715


class TestLawsOfScores:
    """Attention that is several kernels has a law of its mean, and one of the best alignment."""

    def document(self) -> dict[str, Any]:
        return json.loads(packaged_profile_text("h200-mlx-0.32.4-no-cudnn"))

    def test_both_come_back_as_they_were_written(self) -> None:
        profile = profile_from_json(json.dumps(self.document()), "own")
        again = profile_from_json(profile_to_json(profile), "again")
        assert profile.header.aligned_attention is not None
        assert again.header == profile.header
        assert again.machine.aligned_attention == profile.machine.aligned_attention
        assert again.machine.aligned_attention != again.machine.unfused_attention
        name = "aligned.attention.1.bandwidth_bytes_per_s"
        np.testing.assert_allclose(
            again.constants[name].draws, profile.constants[name].draws, rtol=1e-5
        )

    def test_a_profile_from_before_the_second_reads_and_writes_as_before(self) -> None:
        whole = self.document()
        del whole["aligned_attention"]
        whole["constants"] = {
            name: constant
            for name, constant in whole["constants"].items()
            if not name.startswith("aligned.")
        }
        older = profile_from_json(json.dumps(whole), "older")
        assert older.machine.aligned_attention is None
        assert older.machine.unfused_attention is not None
        assert profile_from_json(profile_to_json(older), "again").header == older.header

    @pytest.mark.parametrize(
        ("change", "line"),
        [
            (("aligned_attention", "shape", "unfused"), "aligned_attention: is a law of 'unfused"),
            (("aligned_attention", "format", "4bit"), "aligned_attention: is a law of '4bit"),
            (("unfused_attention", "shape", "aligned"), "unfused_attention: is a law of 'aligned"),
            (
                ("aligned_attention", "rows_measured", 0),
                "law aligned.attention: was measured at no",
            ),
        ],
    )
    def test_one_in_the_place_of_another_is_refused(
        self, change: tuple[str, str, object], line: str
    ) -> None:
        whole = self.document()
        place, name, value = change
        whole[place][name] = value
        with pytest.raises(InputError, match=line):
            profile_from_json(json.dumps(whole), "p")

    @pytest.mark.parametrize("power", [0.0, -0.5, 1.1])
    def test_an_impossible_power_of_depth_is_refused(self, power: float) -> None:
        whole = self.document()
        whole["aligned_attention"]["depth_power"] = power
        with pytest.raises(InputError, match="grows by an impossible power of depth"):
            profile_from_json(json.dumps(whole), "p")

    @pytest.mark.parametrize("share", [0.0, 1.0 + 1e-9, 1.5])
    def test_no_share_of_submitting_beyond_all_of_it_is_read(self, share: float) -> None:
        whole = self.document()
        whole["constants"]["walk_share"]["value"] = share
        with pytest.raises(InputError, match="walk_share: is not a share of submitting a pass"):
            profile_from_json(json.dumps(whole), "p")

    def test_draws_of_a_share_may_be_more_than_all(self) -> None:
        """They are capped where a pass is priced."""
        whole = self.document()
        share = whole["constants"]["walk_share"]
        share |= {"value": 1.0, "draws": [2.0, *share["draws"][1:]]}
        profile = profile_from_json(profile_to_json(profile_from_json(json.dumps(whole), "p")), "p")
        assert profile.constants["walk_share"].value == 1.0
        assert profile.constants["walk_share"].draws[0] == 2.0

    def test_a_law_without_rates_is_refused(self) -> None:
        whole = self.document()
        for name in [name for name in whole["constants"] if name.startswith("aligned.")]:
            del whole["constants"][name]
        with pytest.raises(InputError, match=r"aligned\.attention\.1\.\*: gives no rate"):
            profile_from_json(json.dumps(whole), "p")


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
        (with_value(True, "schema"), "p: schema: is True"),
        (with_value(5, "samples"), "p: samples: is not a list of objects"),
        (with_value([3], "samples"), "p: samples: is not a list of"),
        (with_value([], "environment"), "p: environment: is not an object"),
        (with_value(None, "environment", "mlx_variables"), "mlx_variables: is not a list of pairs"),
        (with_value([["A"]], "environment", "mlx_variables"), "mlx_variables: is not a list of pa"),
        (with_value([["A", 1]], "environment", "mlx_variables"), "mlx_variables: is not a list"),
        (with_value("unfused", "attention", "shape"), "p: attention: is a law of 'unfused.att"),
        (with_value("4bit", "attention", "format"), "p: attention: is a law of '4bit"),
        (with_value(0, "memory_bytes"), "p: memory_bytes: is not possible"),
        (with_value(0, "recommended_working_set_bytes"), "recommended_working_set_bytes: is not"),
        (with_value(10**400, "recommended_working_set_bytes"), "working_set_bytes: is not"),
        (with_value(3, "activation_bytes"), "p: activation_bytes: is not possible"),
        (with_value(0, "context_measured"), "p: context_measured: is not possible"),
        (with_value(-0.1, "residual_log"), "p: residual_log: is not possible"),
        (with_value(1e308, "residual_log"), "p: residual_log: is not"),
        (
            with_value(-0.1, "several_rows_residual_log"),
            "p: several_rows_residual_log: is not possible",
        ),
        (with_value(0, "laws", 0, "rows_measured"), "law affine.wide: was measured at no row"),
        (with_value(0, "attention", "rows_measured"), "law attention: was measured at no row"),
        (with_value(1e308, "laws", 0, "regimes", 0, "tile_rows"), "has a tile below one row or"),
        (with_value(-1.0, "laws", 0, "regimes", 0, "reread"), "by an impossible share"),
        (with_value("fp", "laws", 0, "format"), "law fp.wide: is there more than once"),
        (with_value(1e21, "constants", "sync_s", "value"), "sync_s: is larger than any cost"),
        (with_value(12, "gpu", "generation"), "p: gpu: is no Apple GPU; give generation 13"),
        (with_value("gs", "gpu", "size"), "p: gpu: is no Apple GPU; give generation"),
        (with_value("", "gpu", "size"), "gpu: is no Apple GPU; give .* size g, s, d or p"),
        (with_value(0, "gpu", "cores"), "gpu: is no Apple GPU; give .* 1 or more cores"),
        (without("gpu", "cores"), r"p: gpu\.cores: is missing"),
        (with_value("M3", "gpu"), "p: gpu: is 'M3'; give an object with named fields"),
        (with_value(1.5, "constants", "sustained_share", "value"), "is not a share of the cold"),
        (with_value(0.0, "constants", "sustained_share", "value"), "share: is not a share"),
        (with_value(10**400, "constants", "sync_s", "stderr"), "sync_s: stderr: is 1000"),
        (
            with_value([0.0] * 3, "constants", "affine.wide.1.bandwidth_bytes_per_s", "draws"),
            r"constants\.affine\.wide\.1\.\*: gives no rate of 1 or more",
        ),
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
    with pytest.raises(InputError, match="gives no rate of 1 or more"):
        profile_from_json(json.dumps(whole), "p")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    profile = profile_from_json(json.dumps(document()), "m3")
    write_profile(profile, path)
    before = path.read_text()
    object.__setattr__(profile.header, "residual_log", float("nan"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_profile(profile, path)
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["p.json"]
    assert profile_to_json(read_profile(path)) == before


def test_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    profile = profile_from_json(json.dumps(document()), "m3")
    with pytest.raises(InputError, match=r"p\.json: cannot be written"):
        write_profile(profile, tmp_path / "file" / "p.json")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema": ' + "9" * 6000 + "}", "", "\ufeff{}"])
def test_what_no_parser_reads_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match="p: is not whole JSON") as refusal:
        profile_from_json(text, "p")
    assert "\n" not in str(refusal.value)


def test_a_folder_is_no_place_for_a_profile(tmp_path: Path) -> None:
    (tmp_path / "p.json").mkdir()
    profile = profile_from_json(json.dumps(document()), "m3")
    with pytest.raises(InputError, match=r"p\.json: cannot be written"):
        write_profile(profile, tmp_path / "p.json")
    assert [each.name for each in tmp_path.iterdir()] == ["p.json"]


@pytest.mark.parametrize(("value", "stderr"), [(1e-308, 1e-3), (1.0, 1e20), (1e20, 1e-308)])
def test_draws_of_any_error_bar_are_finite(value: float, stderr: float) -> None:
    draws = seeded_draws(value, stderr, count=200, seed=1)
    assert np.all(np.isfinite(draws))
    assert np.all(draws >= 0.0)


def test_draws_have_the_median_and_the_spread_that_were_stated() -> None:
    draws = seeded_draws(10.0, 1.0, count=100_000, seed=1)
    assert float(np.median(draws)) == pytest.approx(10.0, rel=0.01)
    assert float(np.std(draws)) == pytest.approx(1.0, rel=0.02)
