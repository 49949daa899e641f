from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as generate

from calibrate.timing import (
    LONGEST_CHAIN,
    Pace,
    Visit,
    chain_length,
    elapsed,
    is_double,
    summarise,
    visit,
)
from tests.calibrate.fake_device import FakeClock, FakeWorkload

PACE = Pace(repetition_s=0.02, repeats=2, most_repeats=6, check_tries=3, limit_s=1000.0)


def test_preparation_is_not_timed() -> None:
    clock = FakeClock()
    workload = FakeWorkload(clock, unit_s=0.25)
    assert elapsed(workload, 4, clock) == pytest.approx(1.0)


class TestChainLength:
    @given(
        unit_s=generate.floats(1e-5, 1.0),
        floor_s=generate.floats(0.0, 5e-4),
        guess_s=generate.one_of(generate.just(0.0), generate.floats(1e-6, 1.0)),
    )
    def test_a_chain_fills_the_repetition_whatever_the_guess(
        self, unit_s: float, floor_s: float, guess_s: float
    ) -> None:
        clock = FakeClock()
        workload = FakeWorkload(clock, unit_s=unit_s, floor_s=floor_s)
        units = chain_length(workload, clock, PACE, guess_s)
        chain_s = floor_s + units * unit_s
        assert chain_s >= 0.6 * PACE.repetition_s
        assert units == 1 or chain_s <= 1.6 * PACE.repetition_s

    def test_the_first_unit_may_compile(self) -> None:
        clock = FakeClock()
        slow_start = FakeWorkload(
            clock, unit_s=1e-4, disturbed=lambda number: 8.0 if number == 0 else 0.0
        )
        assert chain_length(slow_start, clock, PACE, 0.0) == pytest.approx(200, rel=0.5)

    def test_work_that_takes_no_time_ends_too(self) -> None:
        clock = FakeClock()
        assert chain_length(FakeWorkload(clock, unit_s=0.0), clock, PACE, 0.0) == LONGEST_CHAIN


class TestVisit:
    def test_quiet_work_is_repeated_no_more_than_asked(self) -> None:
        clock = FakeClock()
        workload = FakeWorkload(clock, unit_s=1e-3)
        seen = visit(workload, clock, PACE, 20, check=True)
        assert workload.jobs == [5, 20, 20, 10]  # warm-up, two repetitions, half as much
        assert seen.times_s == pytest.approx((0.02, 0.02))
        assert seen.doubling == pytest.approx(2.0)

    def test_work_that_is_not_done_fails_the_check(self) -> None:
        clock = FakeClock()
        lazy = FakeWorkload(clock, unit_s=0.0, floor_s=0.02)
        seen = visit(lazy, clock, PACE, 20, check=True)
        assert seen.doubling == pytest.approx(1.0)
        assert not is_double(seen.doubling)

    def test_a_disturbed_check_is_tried_again(self) -> None:
        clock = FakeClock()
        workload = FakeWorkload(
            clock, unit_s=1e-3, disturbed=lambda number: 0.02 if number == 3 else 0.0
        )
        seen = visit(workload, clock, PACE, 20, check=True)
        assert seen.doubling == pytest.approx(2.0)

    def test_repetitions_go_on_until_the_fastest_agree(self) -> None:
        clock = FakeClock()
        noise = [0.0, 0.01, 0.02, 0.005, 0.0, 0.0, 0.03]
        workload = FakeWorkload(clock, unit_s=1e-3, disturbed=lambda number: noise[number])
        seen = visit(workload, clock, PACE, 20, check=False)
        assert len(seen.times_s) == 5
        assert seen.check_s is None
        assert seen.doubling is None

    def test_hurried_it_makes_no_second_tries(self) -> None:
        clock = FakeClock()
        workload = FakeWorkload(clock, unit_s=1e-3, disturbed=lambda number: 0.01 * number)
        seen = visit(workload, clock, PACE.hurried, 20, check=True)
        assert len(seen.times_s) == PACE.repeats
        assert len(workload.jobs) == 1 + PACE.repeats + 1

    def test_out_of_time_it_keeps_one_repetition(self) -> None:
        clock = FakeClock()
        workload = FakeWorkload(clock, unit_s=1.0)
        impatient = Pace(repetition_s=0.02, repeats=5, most_repeats=9, check_tries=3, limit_s=0.001)
        seen = visit(workload, clock, impatient, 1, check=True)
        assert seen.times_s == (1.0,)
        assert seen.doubling is None

    def test_one_unit_that_fills_a_repetition_is_checked_with_two(self) -> None:
        clock = FakeClock()
        seen = visit(FakeWorkload(clock, unit_s=0.5), clock, PACE, 1, check=True)
        assert seen.check_units == 2
        assert seen.doubling == pytest.approx(2.0)


class TestSummary:
    def test_other_programs_do_not_move_it(self) -> None:
        quiet = Visit(units=10, times_s=(1.0,) * 10, check_units=5, check_s=None)
        loud = Visit(units=10, times_s=(3.0,) * 5, check_units=5, check_s=None)
        assert summarise([quiet, loud]).seconds == summarise([quiet]).seconds == 0.1
        assert summarise([quiet, loud]).spread == 0

    def test_repetitions_that_differ_all_along_show(self) -> None:
        uneven = Visit(units=1, times_s=(1.0, 1.1, 1.2, 1.3, 1.4), check_units=2, check_s=None)
        assert summarise([uneven]).spread == pytest.approx(1.1 / 1.02 - 1)

    @given(
        times_s=generate.lists(generate.floats(1e-3, 1.0), min_size=1, max_size=20),
        units=generate.integers(1, 1000),
    )
    def test_seconds_lie_among_the_repetitions(self, times_s: list[float], units: int) -> None:
        timing = summarise(
            [Visit(units=units, times_s=tuple(times_s), check_units=1, check_s=None)]
        )
        assert min(times_s) / units <= timing.seconds * (1 + 1e-12)
        assert timing.seconds <= max(times_s) / units * (1 + 1e-12)
        assert timing.spread >= 0
        assert timing.repeats == len(times_s)

    def test_the_best_check_counts(self) -> None:
        spoiled = Visit(units=10, times_s=(1.0,), check_units=5, check_s=0.9)
        good = Visit(units=10, times_s=(1.0,), check_units=5, check_s=0.5)
        assert summarise([spoiled, good]).doubling == pytest.approx(2.0)
        assert math.isclose(summarise([spoiled]).doubling or 0, 2 / 1.8)


class TestSubmittedAhead:
    """The clock starts when the host sees the device free: late, and a repetition is too short."""

    def workload(self, clock: FakeClock, spoilt: set[int]) -> FakeWorkload:
        made = FakeWorkload(
            clock,
            unit_s=1e-4,
            disturbed=lambda number: -0.8e-2 if number in spoilt else 0.0,
        )
        made.is_ahead = True
        return made

    def test_a_repetition_that_was_too_short_does_not_win(self) -> None:
        clock = FakeClock()
        seen = visit(self.workload(clock, {2}), clock, PACE, 100, check=False)
        assert min(seen.times_s) == pytest.approx(0.2e-2)
        assert seen.ahead
        assert summarise([seen]).seconds == pytest.approx(1e-4)

    def test_three_are_made_though_two_would_do(self) -> None:
        clock = FakeClock()
        seen = visit(self.workload(clock, set()), clock, PACE, 100, check=False)
        assert len(seen.times_s) == 3

    def test_a_visit_that_was_not_ahead_gives_way_to_one_that_was(self) -> None:
        plain = Visit(units=10, times_s=(5.0, 5.0), check_units=5, check_s=None)
        ahead = Visit(units=10, times_s=(1.0, 1.0, 1.1), check_units=5, check_s=None, ahead=True)
        assert summarise([plain, ahead]).seconds == pytest.approx(0.1)

    def test_a_workload_that_falls_back_is_timed_again(self) -> None:
        clock = FakeClock()
        made = self.workload(clock, set())

        def disturbed(number: int) -> float:
            if number == 1:
                made.is_ahead = False
            return 0.0

        made.disturb(disturbed)
        seen = visit(made, clock, PACE, 100, check=False)
        assert not seen.ahead
        assert len(seen.times_s) == 2
