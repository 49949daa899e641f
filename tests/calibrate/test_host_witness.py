"""Is the host at its own speed: by the fastest that was seen, and waited for in vain no longer."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain, repeat

import pytest

from calibrate.host_witness import (
    FIRST_TRIES,
    PAUSE_S,
    QUIET,
    TRIES,
    HostWitness,
    host_work_s,
    is_disturbed,
)

WORK_S = 1e-3


class FakeHost:
    """Time passes only in sleep; until `slow_until_s` the work takes twice as long."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.slow_until_s = 0.0
        self.pauses = 0

    def work_s(self) -> float:
        return 2 * WORK_S if self.now_s < self.slow_until_s else WORK_S

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.pauses += 1

    def clock(self) -> float:
        return self.now_s

    def witness(
        self, budget_s: float = math.inf, say: Callable[[str], None] | None = None
    ) -> HostWitness:
        return HostWitness(self.work_s, self.clock, self.sleep, budget_s=budget_s, say=say)


def witness(*later_s: float, first_s: float = WORK_S) -> HostWitness:
    """One that saw a host of one speed at first, and sees these from now on."""
    works_s = chain(repeat(first_s, FIRST_TRIES), later_s)
    return HostWitness(lambda: next(works_s), clock=lambda: 0.0)


class TestIsQuiet:
    def test_at_the_fastest_that_was_seen_and_near_it(self) -> None:
        asked = (1.0, 1.05, 0.99 * QUIET, 1.01 * QUIET, 10.0, 1.0)
        here = witness(*(each * WORK_S for each in asked))
        assert [here.is_quiet() for _ in asked] == [True, True, True, False, False, True]

    def test_the_fastest_of_the_first_pieces_is_the_yardstick(self) -> None:
        works_s = iter([*[2 * WORK_S] * (FIRST_TRIES - 1), WORK_S, 2 * WORK_S])
        assert not HostWitness(lambda: next(works_s)).is_quiet()

    def test_a_faster_piece_later_on_is_a_new_yardstick(self) -> None:
        here = witness(2 * WORK_S, WORK_S, 2 * WORK_S, first_s=2 * WORK_S)
        assert [here.is_quiet() for _ in range(3)] == [True, True, False]

    def test_a_host_that_is_always_slow_is_quiet(self) -> None:
        here = witness(9.0, 9.1, 9.2, first_s=9.0)
        assert all(here.is_quiet() for _ in range(3))

    @pytest.mark.parametrize(("known_s", "quiet"), [(1.0, False), (8.0, True), (math.inf, True)])
    def test_what_an_earlier_process_saw_is_a_yardstick_too(
        self, known_s: float, quiet: bool
    ) -> None:
        assert HostWitness(lambda: 9.0, known_s=known_s).is_quiet() == quiet

    def test_of_what_is_known_and_what_is_seen_the_faster_one_counts(self) -> None:
        assert not HostWitness(chain([1.0], repeat(9.0)).__next__, known_s=8.0).is_quiet()


class TestAwaitQuiet:
    def test_a_quiet_host_is_not_waited_for(self) -> None:
        host = FakeHost()
        assert host.witness().await_quiet(15.0)
        assert host.pauses == 0

    def test_a_disturbed_one_is_waited_for_until_it_is_quiet(self) -> None:
        host = FakeHost()
        here = host.witness()
        host.slow_until_s = host.now_s + 3.0
        assert here.await_quiet(15.0)
        assert 3.0 <= host.now_s - 100.0 < 3.0 + 2 * PAUSE_S
        assert here.is_quiet()

    def test_it_gives_up_at_the_limit(self) -> None:
        host = FakeHost()
        here = host.witness()
        host.slow_until_s = math.inf
        assert not here.await_quiet(15.0)
        assert 15.0 <= host.now_s - 100.0 < 15.0 + 2 * PAUSE_S
        assert not here.is_quiet()

    @pytest.mark.parametrize("limit_s", [0.0, -1.0])
    def test_without_time_it_waits_for_nothing(self, limit_s: float) -> None:
        host = FakeHost()
        here = host.witness()
        host.slow_until_s = math.inf
        assert not here.await_quiet(limit_s)
        assert host.pauses == 0

    def test_nothing_is_waited_for_where_it_was_slow_from_the_first(self) -> None:
        host = FakeHost()
        host.slow_until_s = math.inf
        assert host.witness().await_quiet(15.0)
        assert host.pauses == 0


class TestBudget:
    """All waits together take so long at most."""

    def test_what_one_wait_took_is_not_left_for_the_next(self) -> None:
        host = FakeHost()
        here = host.witness(budget_s=20.0)
        host.slow_until_s = math.inf
        for waited_s, is_spent in ((15.0, False), (20.0, True), (20.0, True)):
            assert not here.await_quiet(15.0)
            assert waited_s <= host.now_s - 100.0 < waited_s + 3 * PAUSE_S
            assert here.is_spent == is_spent

    def test_a_quiet_host_takes_nothing_of_it_and_one_that_is_spent_still_tells(self) -> None:
        host = FakeHost()
        here = host.witness(budget_s=1.0)
        assert all(here.await_quiet(15.0) for _ in range(9))
        assert not here.is_spent
        host.slow_until_s = host.now_s + 9.0
        assert not here.await_quiet(15.0)
        assert here.is_spent
        host.slow_until_s = 0.0
        assert here.await_quiet(15.0)

    def test_without_one_it_is_never_spent(self) -> None:
        host = FakeHost()
        here = host.witness()
        host.slow_until_s = math.inf
        assert not here.await_quiet(1000.0)
        assert not here.is_spent


@pytest.mark.parametrize(
    ("budget_s", "limit_s", "slow_s", "times"),
    [(9.0, 1.0, math.inf, 1), (9.0, 1.0, 0.0, 0), (9.0, 0.0, math.inf, 0), (0.0, 1.0, math.inf, 0)],
    ids=["slow", "quiet", "no-limit", "no-budget"],
)
def test_that_the_host_is_waited_for_is_said_once(
    budget_s: float, limit_s: float, slow_s: float, times: int
) -> None:
    host, said = FakeHost(), list[str]()
    here = host.witness(budget_s, said.append)
    host.slow_until_s = host.now_s + slow_s
    for _ in range(3):
        here.await_quiet(limit_s)
    assert said == ["the host is slower than it can be, and is waited for"] * times


def test_one_piece_of_work_that_took_longer_is_enough_to_be_disturbed() -> None:
    assert not is_disturbed((WORK_S, 1.4 * WORK_S), WORK_S)
    assert is_disturbed((WORK_S, 1.6 * WORK_S), WORK_S)
    assert is_disturbed((1.6 * WORK_S, WORK_S), WORK_S)


def test_what_was_not_timed_is_not_disturbed() -> None:
    assert not is_disturbed((), WORK_S)
    assert not is_disturbed((), math.inf)


def test_the_middle_one_of_some_pieces_counts() -> None:
    """Pieces of 1, 10 and 2 seconds, each between two looks at the clock."""
    looks = iter([0.0, 1.0, 1.0, 11.0, 11.0, 13.0])
    assert host_work_s(lambda: next(looks)) == 2.0
    assert next(looks, None) is None
    assert TRIES == 3
