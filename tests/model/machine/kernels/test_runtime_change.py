"""One machine under several releases of MLX: what must not change, and what must."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from model.catalog import packaged_profile_text
from model.errors import InputError
from model.machine.constant import Origin
from model.machine.kernels.releases import known_releases, runtime_name
from model.machine.kernels.runtime_change import as_runtime
from model.machine.profile import Profile
from model.machine.profile_file import profile_from_json, profile_to_json
from model.machine.profile_store import named_profile
from model.machine.row_law import Product
from model.network.weight_format import weight_format

M3 = named_profile("m3-10core-16gb")
H200 = named_profile("h200-mlx-0.32.4")
FORMATS = ("4bit", "8bit", "mxfp4", "bf16")
MATRICES = ((4096, 14336), (4096, 4096), (14336, 4096), (2048, 2048), (4096, 128_256))
LLAMA_8B = (
    # depth, columns of all siblings, columns of the widest, how often
    (4096, 6144, 4096, 32),
    (4096, 4096, 4096, 32),
    (4096, 28672, 14336, 32),
    (14336, 4096, 4096, 32),
    (4096, 128_256, 128_256, 1),
)
OVERHEAD_S = 1.8e-3
"""What a pass of 32 layers costs beside its matrices (mlx PR 1864, M2 mini)."""


@cache
def m3_under(runtime: str) -> Profile:
    """The packaged M3 under another release."""
    return as_runtime(M3, runtime)


def seconds(profile: Profile, name: str, matrix: tuple[int, int], rows: int) -> float:
    stored_as, (depth, columns) = weight_format(name), matrix
    law = profile.machine.law(stored_as, depth=depth, columns=columns)
    read_bytes = stored_as.matrix_bytes(columns, depth)
    multiplied = Product(read_bytes=read_bytes, depth=depth, columns=columns)
    return float(law.time(multiplied, rows).total_s)


def pass_ratio(profile: Profile, name: str, rows: int) -> float:
    """A pass of an 8B model over one of one row: its matrices, and a fixed overhead."""
    stored_as = weight_format(name)

    def pass_s(count: int) -> float:
        total = OVERHEAD_S
        for depth, columns, widest, times in LLAMA_8B:
            law = profile.machine.law(stored_as, depth=depth, columns=columns, widest=widest)
            read_bytes = stored_as.matrix_bytes(columns, depth)
            multiplied = Product(read_bytes=read_bytes, depth=depth, columns=columns)
            total += times * float(law.time(multiplied, count).total_s)
        return total

    return pass_s(rows) / pass_s(1)


class TestWhatStays:
    """A release changes which kernel runs, not what it costs."""

    @pytest.mark.parametrize("runtime", ["mlx-0.32", "mlx-0.32.4"])
    def test_its_own_release_is_the_profile_itself(self, runtime: str) -> None:
        assert as_runtime(M3, runtime) is M3

    @pytest.mark.parametrize("release", known_releases())
    def test_one_row_costs_the_same_to_the_last_digit(self, release: tuple[int, int, int]) -> None:
        other = m3_under(runtime_name(release))
        for name, matrix in product(FORMATS, MATRICES):
            assert seconds(other, name, matrix, 1) == seconds(M3, name, matrix, 1)

    @pytest.mark.parametrize("profile", [M3, H200], ids=["m3", "h200"])
    def test_a_release_that_changed_nothing_prices_alike(self, profile: Profile) -> None:
        other = as_runtime(profile, "mlx-0.32.2")
        assert other.header.laws == profile.header.laws
        assert other.constants == profile.constants
        assert other.header.runtime == "mlx-0.32.2"

    def test_constants_of_a_shared_kernel_keep_their_draws(self) -> None:
        old = m3_under("mlx-0.31")
        for rate in ("bandwidth_bytes_per_s", "flops_per_s"):
            # the tiled kernel, from row 13 to row 10; steel, from row 16 to row 2
            for before, after in (
                ("affine.wide.13", "affine.wide.10"),
                ("float.wide.16", "float.wide.2"),
            ):
                np.testing.assert_array_equal(
                    old.constants[f"{after}.{rate}"].draws, M3.constants[f"{before}.{rate}"].draws
                )
        assert old.constants["sync_s"] is M3.constants["sync_s"]
        assert "affine.wide.13.flops_per_s" not in old.constants

    @pytest.mark.parametrize(
        ("runtime", "first", "last"),
        [("mlx-0.31", 2, 9), ("mlx-0.31", 10, 64), ("mlx-0.32.0", 2, 9)],
    )
    @pytest.mark.parametrize("name", ["4bit", "8bit", "mxfp4"])
    def test_more_rows_never_cost_less_within_a_kernel(
        self, runtime: str, first: int, last: int, name: str
    ) -> None:
        other = m3_under(runtime)
        costs = [seconds(other, name, (4096, 14336), rows) for rows in range(first, last + 1)]
        assert costs == sorted(costs)
        assert costs[0] >= seconds(other, name, (4096, 14336), 1)


class TestWhatChanges:
    """The M3 of the article, before and after the wide kernels."""

    @pytest.mark.parametrize(
        ("rows", "ratio"),
        [(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.18), (5, 1.47), (6, 1.96), (8, 2.33), (9, 2.90)]
        + [(rows, 3.62) for rows in (16, 24, 32)],
    )
    def test_0_32_checks_three_rows_for_nothing(self, rows: int, ratio: float) -> None:
        """The tile law on 92 GB/s, 1.10 and 2.8 TFLOP/s, and 1.8 ms that do not grow."""
        assert pass_ratio(M3, "4bit", rows) == pytest.approx(ratio, rel=0.02)

    @pytest.mark.parametrize("rows", range(2, 10))
    def test_0_31_pays_for_every_row(self, rows: int) -> None:
        """By hand: 2 x 7.50e9 weights at 0.652e12 FLOP/s are 23.0 ms a row; reading takes 45.9."""
        old = m3_under("mlx-0.31")
        expected = (max(45.9, rows * 23.02) + 1.8) / (45.9 + 1.8)
        assert pass_ratio(old, "4bit", rows) == pytest.approx(expected, rel=0.01)

    def test_the_kernel_level_is_the_law_itself(self) -> None:
        """Rows 6 in 0.32: two tiles of three, each the larger of reading and decoding."""
        depth, columns = 4096, 14336
        read_s = depth * columns * 4.5 / 8 / 92e9
        decode_s = 3 * 2 * depth * columns / 1.1e12
        expected = 2 * max(read_s, decode_s)
        assert seconds(M3, "4bit", (depth, columns), 6) == pytest.approx(expected, rel=1e-12)

    def test_bf16_steps_at_two_rows_and_is_flat_before_gemv_wide(self) -> None:
        old = m3_under("mlx-0.31")
        costs = [seconds(old, "bf16", (4096, 14336), rows) for rows in (2, 3, 16, 64)]
        assert len(set(costs)) == 1
        # 64 padded rows at 2.55 TFLOP/s over 16-bit reading at 92 GB/s: 64 / 2.55e12 * 92e9 = 2.31
        assert costs[0] / seconds(old, "bf16", (4096, 14336), 1) == pytest.approx(2.31, abs=0.01)

    def test_bf16_follows_the_tile_law_since(self) -> None:
        one = seconds(M3, "bf16", (4096, 14336), 1)
        tiles = [seconds(M3, "bf16", (4096, 14336), rows) / one for rows in (2, 5, 6, 10, 11)]
        assert tiles == pytest.approx([1.0, 1.0, 2.0, 2.0, 3.0])

    def test_0_32_0_has_the_wide_kernel_and_the_old_limits(self) -> None:
        between = as_runtime(M3, "mlx-0.32.0")
        wide, tiled = (seconds(between, "4bit", (4096, 14336), rows) for rows in (9, 10))
        assert wide == seconds(M3, "4bit", (4096, 14336), 9)
        assert tiled == seconds(M3, "4bit", (4096, 14336), 13)
        assert seconds(between, "bf16", (4096, 14336), 2) > 2 * seconds(
            M3, "bf16", (4096, 14336), 2
        )

    def test_m2_does_not_gain_from_the_wide_kernel(self) -> None:
        """Affine formats keep the per-row kernel before generation 15."""
        whole: dict[str, Any] = json.loads(packaged_profile_text("m3-10core-16gb"))
        whole["gpu"] = {"generation": 14, "size": "g", "cores": 10}
        m2 = profile_from_json(json.dumps(whole), "m2")
        old = as_runtime(m2, "mlx-0.31")
        affine = [
            [form for form in each.header.laws if form.format == "affine"] for each in (m2, old)
        ]
        assert affine[0] == affine[1]


def with_law(
    *, format_name: str, shape: str, first_rows: tuple[int, ...], runtime: str = "mlx-0.32.4"
) -> Profile:
    """An M3 measured with one law of several regimes, each with a rate of its own."""
    whole: dict[str, Any] = json.loads(packaged_profile_text("m3-10core-16gb"))
    regime = {"tile_rows": None, "pads": False, "reread": 0.0, "fill_columns": 0.0}
    whole["runtime"] = runtime
    whole["laws"] = [
        {
            "format": format_name,
            "shape": shape,
            "overlap": 1.0,
            "rows_measured": 64,
            "regimes": [regime | {"first_row": row} for row in first_rows],
        }
    ]
    for row in first_rows:
        rate = {"value": 1e9 * row, "stderr": 0.0, "unit": "byte/s", "origin": "measured"}
        whole["constants"][f"{format_name}.{shape}.{row}.bandwidth_bytes_per_s"] = rate
    return profile_from_json(json.dumps(whole), "measured")


def bandwidths(profile: Profile) -> list[tuple[int, float]]:
    """First row and bandwidth in GB/s of every regime of the first law."""
    (law,) = profile.machine.laws.values()
    return [(each.first_row, float(each.bandwidth_bytes_per_s) / 1e9) for each in law.regimes]


class TestMeasuredLaws:
    """Laws with several regimes within a kernel, as a fit makes them."""

    @pytest.mark.parametrize(
        ("runtime", "expected"),
        [
            # per-row rows take the bandwidth of one row; both tiled regimes stay, from row 10
            ("mlx-0.31", [(1, 1.0), (2, 1.0), (10, 13.0), (33, 33.0)]),
            # the wide kernel keeps its two regimes and ends at row 9
            ("mlx-0.32.0", [(1, 1.0), (2, 2.0), (6, 6.0), (10, 13.0), (33, 33.0)]),
            ("mlx-0.32.1", [(1, 1.0), (2, 2.0), (6, 6.0), (13, 13.0), (33, 33.0)]),
        ],
    )
    def test_regimes_of_a_kernel_move_together(
        self, runtime: str, expected: list[tuple[int, float]]
    ) -> None:
        measured = with_law(format_name="4bit", shape="wide", first_rows=(1, 2, 6, 13, 33))
        assert bandwidths(as_runtime(measured, runtime)) == expected

    def test_a_regime_beyond_the_kernels_new_last_row_goes(self) -> None:
        measured = with_law(format_name="4bit", shape="wide", first_rows=(1, 2, 11, 13))
        changed = as_runtime(measured, "mlx-0.32.0")
        assert bandwidths(changed) == [(1, 1.0), (2, 2.0), (10, 13.0)]

    def test_a_law_measured_per_row_gains_the_wide_kernel(self) -> None:
        """Rows 10 and 11 were tiled before and are wide now."""
        measured = with_law(
            format_name="4bit", shape="wide", first_rows=(1, 10, 33), runtime="mlx-0.31.2"
        )
        changed = as_runtime(measured, "mlx-0.32")
        assert bandwidths(changed) == [(1, 1.0), (2, 1.0), (13, 10.0), (33, 33.0)]
        assert changed.constants["4bit.wide.2.flops_per_s"].value == pytest.approx(1.075e12)

    def test_splitting_k_keeps_the_rate_of_the_tile(self) -> None:
        measured = with_law(
            format_name="4bit", shape="square", first_rows=(1, 10), runtime="mlx-0.31.1"
        )
        assert bandwidths(as_runtime(measured, "mlx-0.31.2")) == [(1, 1.0), (10, 10.0)]

    @pytest.mark.parametrize(("format_name", "shape"), [("4bit", "expert"), ("fp32", "wide")])
    def test_what_has_one_kernel_in_every_release_is_kept(
        self, format_name: str, shape: str
    ) -> None:
        measured = with_law(format_name=format_name, shape=shape, first_rows=(1, 2, 13))
        assert as_runtime(measured, "mlx-0.31").header.laws == measured.header.laws


class TestPublishedRates:
    """What a profile was not measured with."""

    def test_planted_cores_scale_the_per_row_rate(self) -> None:
        gpu = M3.header.gpu
        assert gpu is not None
        twice = replace(M3, header=replace(M3.header, gpu=replace(gpu, cores=20)))
        rates = [
            as_runtime(each, "mlx-0.31").constants["affine.wide.2.flops_per_s"]
            for each in (M3, twice)
        ]
        assert rates[1].value == pytest.approx(2 * rates[0].value)
        assert rates[0].origin is Origin.PUBLISHED
        assert len(rates[0].draws) == len(M3.constants["sync_s"].draws)

    def test_going_back_and_forth_comes_near_the_start(self) -> None:
        """Published rates per core replace the profile's own: M3 Max's 1.075 for the prior 1.10."""
        again = as_runtime(m3_under("mlx-0.31"), "mlx-0.32")
        for rows in (1, 3, 5, 9, 16):
            near = seconds(again, "4bit", (4096, 14336), rows)
            assert near == pytest.approx(seconds(M3, "4bit", (4096, 14336), rows), rel=0.03)

    def test_the_interval_widens_where_a_rate_is_carried_over(self) -> None:
        old = m3_under("mlx-0.31")
        stored_as = weight_format("4bit")
        law = old.sampled_machine.law(stored_as, depth=4096, columns=14336)
        read_bytes = stored_as.matrix_bytes(14336, 4096)
        multiplied = Product(read_bytes=read_bytes, depth=4096, columns=14336)
        spread = [float(np.std(np.log(law.time(multiplied, rows).total_s))) for rows in (1, 5)]
        assert spread[1] > 3 * spread[0]


class TestFilesAndRefusals:
    """A changed profile is a profile; what cannot be changed says why."""

    def test_a_changed_profile_survives_writing_and_reading(self) -> None:
        old = m3_under("mlx-0.31")
        again = profile_from_json(profile_to_json(old), "old")
        assert again.header == old.header
        assert again.constants.keys() == old.constants.keys()
        assert again.machine.dispatch == old.machine.dispatch

    @pytest.mark.parametrize(
        ("profile", "runtime", "line"),
        [
            (M3, "mlx-0.33", "runtime 'mlx-0.33': is not known; give mlx-0.17"),
            (H200, "mlx-0.31", r"has no table of the kernels of mlx-0\.31\.2 \(cuda\); ask for"),
            (
                replace(M3, header=replace(M3.header, gpu=None)),
                "mlx-0.31",
                "machine m3-10core-16gb: does not state its GPU; calibrate again",
            ),
        ],
        ids=["unknown", "cuda", "no gpu"],
    )
    def test_refusals_are_one_line(self, profile: Profile, runtime: str, line: str) -> None:
        with pytest.raises(InputError, match=line) as refusal:
            as_runtime(profile, runtime)
        assert "\n" not in str(refusal.value)

    def test_rates_stay_finite_and_positive(self) -> None:
        for release in known_releases():
            other = m3_under(runtime_name(release))
            for constant in other.constants.values():
                assert math.isfinite(constant.value)
                assert np.all(constant.draws >= 0.0)
