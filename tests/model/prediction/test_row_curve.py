"""The cost of a pass by rows: cliffs where tiles or kernels change, none where rows cost alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

from model.cost.forward import forward_pass
from model.machine.kernels.runtime_change import as_runtime
from model.machine.profile_store import choose_profile
from model.machine.row_law import Regime, RowLaw
from model.network.target import load_target
from model.prediction.row_curve import KERNEL, OTHER, SLOT, TILE, jumps, reason_at, row_curve

M3 = choose_profile("m3-10core-16gb").profile
LLAMA = load_target("llama-3.1-8b", "8bit")


def test_the_curve_is_the_price_of_each_pass() -> None:
    curve = row_curve(LLAMA, M3.machine, context=1024.0, most_rows=20)
    assert len(curve.seconds) == 20
    assert curve.relative[0] == 1.0
    for rows in (1, 2, 6, 13, 20):
        alone = forward_pass(LLAMA, M3.machine, rows=rows, context=1024.0)
        assert curve.seconds[rows - 1] == pytest.approx(float(alone.device_s), rel=1e-12)


def test_rows_of_several_sequences_meet_the_kernels_together() -> None:
    alone = row_curve(LLAMA, M3.machine, context=0.0, most_rows=12)
    three = row_curve(LLAMA, M3.machine, context=0.0, most_rows=8, sequences=3)
    assert 13 not in alone.kernel_rows
    assert 5 in three.kernel_rows  # 15 rows in all
    for rows in (1, 2, 8):
        cost = forward_pass(LLAMA, M3.machine, rows=rows, context=0.0, sequences=3)
        assert three.seconds[rows - 1] == pytest.approx(float(cost.device_s), rel=1e-12)


def test_the_wide_kernel_has_a_cliff_behind_each_of_its_tiles() -> None:
    curve = row_curve(LLAMA, M3.machine, context=1024.0, most_rows=32)
    assert curve.cheapest == (5, 10)
    assert [cliff.reason for cliff in curve.cliffs] == [TILE, TILE]
    for cliff in curve.cliffs:
        step = curve.relative[cliff.row - 1] - curve.relative[cliff.row - 2]
        assert cliff.adds == pytest.approx(step)
    assert 13 in curve.kernel_rows


def test_a_kernel_that_serves_each_row_alone_has_no_cliff() -> None:
    old = as_runtime(M3, "mlx-0.30").machine
    four = load_target("llama-3.1-8b", "4bit")
    curve = row_curve(four, old, context=1024.0, most_rows=9)
    assert curve.cliffs == ()
    assert curve.relative[8] > 4.0


def test_a_kernel_for_many_rows_may_cost_less_than_one_for_few() -> None:
    old = as_runtime(M3, "mlx-0.30").machine
    curve = row_curve(load_target("llama-3.1-8b", "4bit"), old, context=1024.0, most_rows=32)
    assert curve.drops
    for row in curve.drops:
        assert curve.relative[row - 1] < curve.relative[row - 2]


def test_equal_steps_are_no_cliffs_and_one_that_stands_out_is() -> None:
    straight = np.array([1.0, 1.5, 2.0, 2.5, 3.0])
    assert list(jumps(straight)) == []
    stairs = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0])
    assert [row for row, _ in jumps(stairs)] == [4, 7]
    assert [adds for _, adds in jumps(stairs)] == [1.0, 1.0]
    assert list(jumps(np.array([1.0, 1.0, 1.1]))) == []


def test_the_reason_is_what_the_law_changes() -> None:
    wide = Regime(
        first_row=1, tile_rows=5, pads=False, bandwidth_bytes_per_s=1e11, flops_per_s=1e12
    )
    tiled = Regime(
        first_row=13, tile_rows=32, pads=True, bandwidth_bytes_per_s=1e11, flops_per_s=1e12
    )
    law = RowLaw(overlap=math.inf, rows_measured=64, regimes=(wide, tiled))
    assert reason_at(law, 6) == TILE
    assert reason_at(law, 9) == SLOT
    assert reason_at(law, 13) == KERNEL
    assert reason_at(law, 20) == OTHER
