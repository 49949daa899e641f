"""A fixed piece of the host's work, timed beside what is measured: is the host at its own speed?

A computer that is shared, hot or busy with something else is slower for seconds on end, and a
decode that the host takes part in is slower with it: on one lent H200 by 1.6 to 2.2 times, in
phases of half a second to half a minute, and this piece of work, which touches no device, by as
much. Repeats do not tell: two that lie in one such phase agree. So the witness is heard just before
and just after, measurements wait for it, and what was made beside a slow host is known to be.

The yardstick is the fastest time that was seen. On a machine that was busy from the first it is a
slow one; of one that grows slow and stays so a budget limits what is waited for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import final

from calibrate.timing import Clock

ITEMS = 10_000
"""Objects that the piece of work makes: about a millisecond's worth."""
TRIES = 3
"""Of so many pieces in a row the middle one counts: a moment's interruption is no slow phase."""
FIRST_TRIES = 50
"""Pieces by which a process first learns how fast its host is."""
QUIET = 1.5
"""A host that takes so many times its fastest is disturbed. Undisturbed it scatters by 5 %."""
PAUSE_S = 0.02
MOST_WAIT_S = 15.0
"""What a run waits for a quiet host at most; it is then made all the same, and says so."""


def host_work_s(clock: Clock = time.perf_counter) -> float:
    """Seconds of the piece of work."""
    return median(_piece_s(clock) for _ in range(TRIES))


def _piece_s(clock: Clock) -> float:
    begun = clock()
    kept: dict[int, tuple[int, str]] = {}
    for number in range(ITEMS):
        kept[number & 255] = number, str(number)
    return clock() - begun


def is_disturbed(works_s: Iterable[float], fastest_s: float) -> bool:
    """Whether one of these took longer than a host of that speed needs; false where none is.

    >>> is_disturbed((0.0010, 0.0011), 0.0010), is_disturbed((0.0010, 0.0016), 0.0010)
    (False, True)
    """
    return any(work_s > QUIET * fastest_s for work_s in works_s)


@final
class HostWitness:
    """What the host's speed is and was, as far as this process has seen or was told.

    It waits `budget_s` at most in all, and says so when it waits for the first time. `known_s` is
    the fastest that earlier processes have seen: this one may have begun in a slow phase.
    """

    def __init__(
        self,
        work_s: Callable[[], float] = host_work_s,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        *,
        known_s: float = math.inf,
        budget_s: float = math.inf,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._work_s = work_s
        self._clock = clock
        self._sleep = sleep
        self._budget_s = budget_s
        self._say = say
        self._fastest_s = min(known_s, *(work_s() for _ in range(FIRST_TRIES)))

    @property
    def is_spent(self) -> bool:
        """Whether there is no time left to wait."""
        return self._budget_s <= 0.0

    def is_quiet(self) -> bool:
        """Whether the host is at its own speed just now."""
        work_s = self._work_s()
        self._fastest_s = min(self._fastest_s, work_s)
        return not is_disturbed((work_s,), self._fastest_s)

    def await_quiet(self, limit_s: float) -> bool:
        """Wait until the host is at its own speed, at most that long; whether it is."""
        begun = self._clock()
        end = begun + min(limit_s, self._budget_s)
        quiet = self.is_quiet()
        if not quiet and end > begun and self._say is not None:
            self._say("the host is slower than it can be, and is waited for")
            self._say = None
        while not quiet and self._clock() < end:
            self._sleep(PAUSE_S)
            quiet = self.is_quiet()
        self._budget_s -= self._clock() - begun
        return quiet
