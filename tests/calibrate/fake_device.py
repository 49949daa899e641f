"""A device made of a clock: workloads that take as long as they are told to."""

from __future__ import annotations

from collections.abc import Callable

from calibrate.timing import LONGEST_CHAIN, Job


class FakeClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class FakeWorkload:
    """Takes `floor_s` per job and `unit_s` per unit; `disturbed(job number)` comes on top."""

    def __init__(
        self,
        clock: FakeClock,
        *,
        unit_s: float,
        floor_s: float = 0.0,
        disturbed: Callable[[int], float] = lambda _: 0.0,
    ) -> None:
        self._clock = clock
        self._unit_s = unit_s
        self._floor_s = floor_s
        self._disturbed = disturbed
        self.jobs: list[int] = []
        self.longest = LONGEST_CHAIN
        self.is_ahead = False

    def disturb(self, disturbed: Callable[[int], float]) -> None:
        self._disturbed = disturbed

    def prepare(self, units: int) -> Job:
        self._clock.now_s += 5.0  # building a graph is no part of the time

        def job() -> None:
            number = len(self.jobs)
            self.jobs.append(units)
            self._clock.now_s += self._floor_s + units * self._unit_s + self._disturbed(number)

        return job
