"""Speedups: each make over the plain one nearest in time, and of the ratios the middle one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calibrate.repeats import key_of
from calibrate.run_record import Run
from calibrate.speedups import paired_speedups
from tests.calibrate.test_run_record import ENVIRONMENT, PLAIN

CANVAS = replace(PLAIN, strategy="canvas", canvas=8)


def plain(round_s: float) -> Run:
    return replace(PLAIN, round_s=(round_s,) * 5)


def canvas(round_s: float) -> Run:
    """One token a round, so that the speedup is the ratio of the rounds."""
    return replace(CANVAS, round_s=(round_s,) * 5)


def test_the_plain_make_nearest_in_time_is_the_one_beside() -> None:
    for runs, speedup in (
        ([plain(0.4), canvas(0.1), canvas(0.1), canvas(0.1), plain(0.8)], 4.0),
        ([plain(0.4), plain(0.2), canvas(0.1)], 2.0),
        ([canvas(0.1), plain(0.2), plain(0.4)], 2.0),
        ([plain(0.2), plain(0.2), canvas(0.1), plain(0.4), plain(0.4)], 2.0),
    ):
        assert paired_speedups(runs) == {key_of(CANVAS): pytest.approx(speedup)}


def test_others_between_them_count_as_time() -> None:
    other = replace(CANVAS, canvas=4)
    runs = [plain(0.2), *[other] * 3, canvas(0.1), other, plain(0.8)]
    assert paired_speedups(runs)[key_of(CANVAS)] == pytest.approx(8.0)


def test_of_several_ratios_the_middle_one_counts() -> None:
    """Ratios of 2, 1 and 4: the luckiest make of either is nobody's speedup."""
    runs = [plain(0.2), canvas(0.1), plain(0.2), canvas(0.2), plain(0.4), canvas(0.1)]
    assert paired_speedups(runs) == {key_of(CANVAS): pytest.approx(2.0)}
    assert paired_speedups(runs[:4]) == {key_of(CANVAS): pytest.approx(1.5)}


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "llama-3.2-1b"},
        {"target_format": "8bit"},
        {"target_weights": "random"},
        {"library": "mlx-vlm 0.7.10"},
        {"context_tokens": 65},
        {"environment": replace(ENVIRONMENT, mlx="0.32.3")},
    ],
    ids=lambda each: str(*each),
)
def test_a_decode_without_a_plain_run_of_its_own_has_none(changes: dict[str, object]) -> None:
    elsewhere = replace(PLAIN, **changes)  # pyright: ignore[reportArgumentType]
    assert paired_speedups([elsewhere, CANVAS]) == {}
    # And one that is further away is not mistaken for it.
    runs = [plain(0.3), elsewhere, canvas(0.1)]
    assert paired_speedups(runs) == {key_of(CANVAS): pytest.approx(3.0)}


def test_a_plain_run_has_no_speedup_over_itself() -> None:
    assert paired_speedups([PLAIN, PLAIN]) == {}
    assert paired_speedups([]) == {}
