"""What an upgrade of MLX changes for one matrix."""

from __future__ import annotations

import pytest

from model.machine.kernels.runtime_change import as_runtime
from model.machine.kernels.upgrade import upgrade
from model.machine.profile_store import named_profile
from model.network.weight_format import weight_format

NEW = named_profile("m3-10core-16gb")
OLD = as_runtime(NEW, "mlx-0.31")


def test_a_large_4_bit_matrix_gets_the_wide_kernel() -> None:
    per_row, tiled = upgrade(OLD, NEW, weight_format("4bit"), depth=4096, columns=14336)
    assert (per_row.first_row, per_row.last_row) == (2, 9)
    assert (per_row.before, per_row.after) == ("qmv", "qmv_wide")
    assert (tiled.first_row, tiled.last_row) == (10, 12)
    assert (tiled.before, tiled.after) == ("qmm", "qmv_wide")
    # 3 rows: 1.5 products of one row before, 1 after
    assert per_row.before_costs[1] == pytest.approx(1.51, abs=0.01)
    assert per_row.after_costs[1] == 1.0
    assert per_row.cost_ratios[1] == pytest.approx(1 / 1.51, abs=0.005)
    assert str(per_row) == (
        "affine, large matrix, 2 to 9 rows: qmv -> qmv_wide, 0.59 to 1.00 of the time"
    )


def test_rows_and_sizes_follow_the_matrix() -> None:
    changes = upgrade(OLD, NEW, weight_format("4bit"), depth=2048, columns=2048)
    assert [(each.size, each.first_row, each.last_row, each.after) for each in changes] == [
        ("small", 2, 12, "qmv_wide"),
        ("small", 13, 17, "qmm_splitk"),
    ]


def test_bf16_gains_at_two_rows_and_loses_a_third_pass() -> None:
    """gemv_wide reads three times at 11 to 15 rows, where one padded tile would have done."""
    (change,) = upgrade(OLD, NEW, weight_format("bf16"), depth=4096, columns=14336)
    assert (change.first_row, change.last_row, change.before) == (2, 15, "steel")
    assert change.cost_ratios[0] < 0.5
    assert change.cost_ratios[-1] > 1.0


def test_the_way_back_is_the_inverse() -> None:
    there = upgrade(OLD, NEW, weight_format("8bit"), depth=4096, columns=14336)
    back = upgrade(NEW, OLD, weight_format("8bit"), depth=4096, columns=14336)
    for one, other in zip(there, back, strict=True):
        assert (one.before, one.first_row) == (other.after, other.first_row)
        for ratio, inverse in zip(one.cost_ratios, other.cost_ratios, strict=True):
            assert ratio * inverse == pytest.approx(1.0)


def test_nothing_changes_between_a_release_and_itself() -> None:
    assert upgrade(NEW, NEW, weight_format("4bit"), depth=4096, columns=4096) == ()
