"""Speedups: each make over the plain one nearest in time, and of the ratios the middle one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibrate.repeats import key_of
from calibrate.run_record import Run
from calibrate.speedups import paired_speedups
from tests.calibrate.test_run_record import ENVIRONMENT, PLAIN

CANVAS = replace(PLAIN, strategy="canvas", canvas=8)


def plain(round_s: float, **changes: Any) -> Run:
    return replace(PLAIN, round_s=(round_s,) * 5, **changes)


def canvas(round_s: float, **changes: Any) -> Run:
    """One token a round, so that the speedup is the ratio of the rounds."""
    return replace(CANVAS, round_s=(round_s,) * 5, **changes)


def at(minute: int) -> str:
    return f"2026-11-29T12:{minute:02}:00+00:00"


def test_the_plain_make_nearest_in_time_is_the_one_beside() -> None:
    for runs, speedup in (
        ([plain(0.4), canvas(0.1), canvas(0.1), canvas(0.1), plain(0.8)], 4.0),
        ([plain(0.4), plain(0.2), canvas(0.1)], 2.0),
        ([canvas(0.1), plain(0.2), plain(0.4)], 2.0),
        ([plain(0.2), plain(0.2), canvas(0.1), plain(0.4), plain(0.4)], 2.0),
    ):
        assert paired_speedups(runs) == {key_of(CANVAS): pytest.approx(speedup)}


def test_others_between_them_count_as_time_where_dates_are_equal() -> None:
    other = replace(CANVAS, canvas=4)
    runs = [plain(0.2), *[other] * 3, canvas(0.1), other, plain(0.8)]
    assert paired_speedups(runs)[key_of(CANVAS)] == pytest.approx(8.0)


def test_the_date_tells_what_is_near_whatever_the_place() -> None:
    first, own, last = plain(0.2, date=at(0)), canvas(0.1, date=at(9)), plain(0.4, date=at(10))
    for runs in ([first, own, last], [last, own, first], [own, first, last], [last, first, own]):
        assert paired_speedups(runs) == {key_of(CANVAS): pytest.approx(4.0)}


def test_a_date_without_a_time_or_a_zone_is_compared_as_well() -> None:
    runs = [
        plain(0.2, date="2026-11-28"),
        canvas(0.1, date=at(0)),
        plain(0.4, date="2026-11-29T11:00:00"),
    ]
    assert paired_speedups(runs) == {key_of(CANVAS): pytest.approx(4.0)}


QUIET = {"host_work_s": (1e-3, 1.2e-3)}
SLOW = {"host_work_s": (1e-3, 2e-3)}


def pairs(*made: tuple[float, dict[str, Any], dict[str, Any]]) -> list[Run]:
    """Each minute a plain run and one with a canvas, of such a speedup and beside such hosts."""
    return [
        run
        for minute, (speedup, beside, own) in enumerate(made)
        for run in (
            plain(0.1 * speedup, date=at(minute), **beside),
            canvas(0.1, date=at(minute), **own),
        )
    ]


class TestDisturbedPairs:
    """Pairs of which one was made beside a slow host count where there are not two others."""

    @pytest.mark.parametrize("slow", [(SLOW, QUIET), (QUIET, SLOW), (SLOW, SLOW)])
    def test_two_undisturbed_pairs_are_enough(
        self, slow: tuple[dict[str, Any], dict[str, Any]]
    ) -> None:
        runs = pairs((2.0, QUIET, QUIET), *[(9.0, *slow)] * 3, (3.0, QUIET, QUIET))
        assert paired_speedups(runs) == {key_of(CANVAS): pytest.approx(2.5)}

    def test_beside_a_single_undisturbed_pair_all_count(self) -> None:
        runs = pairs((2.0, QUIET, QUIET), (9.0, SLOW, QUIET), (3.0, QUIET, SLOW))
        assert paired_speedups(runs) == {key_of(CANVAS): pytest.approx(3.0)}

    def test_no_quiet_run_further_away_takes_the_place_of_a_disturbed_one(self) -> None:
        runs = pairs((2.0, QUIET, QUIET), (3.0, QUIET, QUIET), (4.0, SLOW, QUIET))
        assert paired_speedups(runs) == {key_of(CANVAS): pytest.approx(2.5)}

    def test_makes_whose_host_was_not_timed_are_undisturbed(self) -> None:
        runs = pairs((2.0, {}, {}), (3.0, {}, {}), (9.0, SLOW, SLOW), (9.0, SLOW, QUIET))
        assert paired_speedups(runs) == {key_of(CANVAS): pytest.approx(2.5)}


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
