"""How long one unit of work takes, from a callable and a clock; knows nothing of MLX.

A *workload* prepares a number of units outside the clock (building a graph, say) and returns a
job that does them and waits until they are done. One unit is far shorter than the price of
waiting, so units are chained until a repetition fills `Pace.repetition_s`, and the time is
divided by their number. Low quantiles are kept: other programs only ever make a run slower.

Every workload checks itself: twice the units must take twice the time. A ratio near 1 means that
the work is not done (a lazy result that nobody asked for) or that waiting dominates; a ratio well
above 2 means that a chain outgrows a cache or that the clock of the device changed meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol, TypeAlias, final

import numpy as np

Clock: TypeAlias = Callable[[], float]
Job: TypeAlias = Callable[[], None]

LOW_QUANTILE = 0.05
AGREEMENT = 0.02
"""Relative difference of the two fastest repetitions that makes them believable."""
DOUBLING_TOLERANCE = 0.15
"""Relative deviation from 2, of the time of twice the work, from which a sample is suspect."""
LONGEST_CHAIN = 20_000
SHARE_AHEAD = 0.25
"""Of the usual time of a repetition, where what is timed was submitted ahead."""
LEAST_AHEAD = 3
"""Repetitions of such a chain at least: of three the middle one is not the one that was spoilt."""


class Workload(Protocol):
    """Work that comes in equal units, up to `longest` of them at once."""

    @property
    def longest(self) -> int:
        """Units that one chain may have."""
        ...

    @property
    def is_ahead(self) -> bool:
        """Whether its units are submitted before the clock starts (:mod:`calibrate.head_start`)."""
        ...

    def prepare(self, units: int) -> Job:
        """Make `units` units ready, outside the clock; the job is run exactly once."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How patiently to measure.

    `repetition_s` is what one repetition should last. A visit makes `repeats` of them, and up to
    `most_repeats` while the two fastest do not agree; the self-check is tried
    `check_tries` times at most. It stops after `limit_s`, but its first repetition is kept.
    """

    repetition_s: float
    repeats: int
    most_repeats: int
    check_tries: int
    limit_s: float

    @property
    def hurried(self) -> Pace:
        """The same without second tries, for when time runs out."""
        return replace(self, most_repeats=self.repeats, check_tries=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What one visit to a workload saw.

    `units` per repetition and the seconds of each; `check_units`, half of them (or two, where
    one alone fills a repetition), and their seconds, where there was time for it.

    Of chains that were submitted `ahead` the clock starts when the host sees the device free for
    them, so that a host that is held up just then makes a repetition too short. Others it can only
    make too long.
    """

    units: int
    times_s: tuple[float, ...]
    check_units: int
    check_s: float | None
    ahead: bool = False

    @property
    def typical_s(self) -> float:
        """The fastest repetition; of chains submitted ahead the middle one."""
        return median(self.times_s) if self.ahead else min(self.times_s)

    @property
    def doubling(self) -> float | None:
        """Time of twice the units over the time of the units; 2 is right."""
        if self.check_s is None:
            return None
        own_s, check_s = self.typical_s / self.units, self.check_s / self.check_units
        return 2 * (own_s / check_s if self.units > self.check_units else check_s / own_s)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds per unit over all visits.

    `spread` is how far the first quartile lies above the low quantile that `seconds` is, relative
    to it: what other programs spoil lies above both. Of chains submitted ahead `seconds` is the
    median, and `spread` half the range between the quartiles. `doubling` is the time of twice the
    units over the time of the units (2 where all is well, None where there was no time to try).
    """

    seconds: float
    spread: float
    repeats: int
    doubling: float | None


def agree(times_s: Sequence[float]) -> bool:
    """Whether the two fastest repetitions agree, so that nothing else ran during them.

    >>> agree([1.5, 1.01, 1.0]), agree([1.5, 1.3, 1.0]), agree([1.0])
    (True, False, False)
    """
    fastest = sorted(times_s)[:2]
    return len(fastest) == 2 and fastest[1] <= fastest[0] * (1 + AGREEMENT)


def middle_agree(times_s: Sequence[float]) -> bool:
    """Whether a repetition beside the middle one agrees with it.

    >>> middle_agree([0.3, 1.0, 1.01]), middle_agree([0.3, 1.0, 1.5]), middle_agree([1.0, 1.0])
    (True, False, False)
    """
    middle = median(times_s)
    near = [each for each in times_s if abs(each / middle - 1) <= AGREEMENT]
    return len(times_s) >= LEAST_AHEAD and len(near) > 1


def is_double(ratio: float | None) -> bool:
    """Whether a time is about twice another; what was not checked is not known to be."""
    return ratio is not None and abs(ratio / 2 - 1) <= DOUBLING_TOLERANCE


def elapsed(workload: Workload, units: int, clock: Clock) -> float:
    """Seconds that `units` units take, preparation excluded."""
    job = workload.prepare(units)
    start_s = clock()
    job()
    return clock() - start_s


def chain_length(workload: Workload, clock: Clock, pace: Pace, guess_s: float) -> int:
    """How many units fill a repetition, found by trying ever longer chains.

    The first unit is not counted: it may compile kernels and touches memory for the first time.
    `guess_s` is a rough idea of one unit; it only saves tries.
    """
    elapsed(workload, 1, clock)
    longest = workload.longest
    repetition_s = (SHARE_AHEAD if workload.is_ahead else 1.0) * pace.repetition_s
    units = 1
    if guess_s > 0:
        units = max(1, min(longest, int(0.2 * repetition_s / guess_s)))
    while True:
        spent_s = max(elapsed(workload, units, clock), 1e-9)
        wanted = max(1, round(units * repetition_s / spent_s))
        if wanted <= 1.5 * units or units >= longest:
            return min(wanted, longest)
        # A short chain is mostly waiting, so its extrapolation undershoots: go on from there.
        units = min(wanted, 16 * units, longest)


def visit(workload: Workload, clock: Clock, pace: Pace, units: int, *, check: bool) -> Visit:
    """Time chains of `units` units, and one of half as many if it is to be checked.

    Whatever else runs on the machine spoils a chain easily, so a check that fails is repeated,
    and so is the chain that it was compared with. A workload that cannot be submitted ahead after
    all is timed again, so that no visit mixes two ways.
    """
    ahead = workload.is_ahead
    seen = _visit(workload, clock, pace, units, check=check, ahead=ahead)
    if workload.is_ahead != ahead:
        seen = _visit(workload, clock, pace, units, check=check, ahead=workload.is_ahead)
    return seen


def _visit(
    workload: Workload, clock: Clock, pace: Pace, units: int, *, check: bool, ahead: bool
) -> Visit:
    end_s = clock() + pace.limit_s
    check_units = units // 2 or 2
    least = max(pace.repeats, LEAST_AHEAD) if ahead else pace.repeats
    believable = middle_agree if ahead else agree
    elapsed(workload, units // 4 or 1, clock)
    times_s = [elapsed(workload, units, clock)]
    while clock() < end_s and (
        len(times_s) < least or not (believable(times_s) or len(times_s) >= pace.most_repeats)
    ):
        times_s.append(elapsed(workload, units, clock))
    seen = Visit(
        units=units, times_s=tuple(times_s), check_units=check_units, check_s=None, ahead=ahead
    )
    checks_s: list[float] = []
    for attempt in range(pace.check_tries if check else 0):
        if is_double(seen.doubling) or clock() > end_s:
            break
        if attempt:
            times_s.append(elapsed(workload, units, clock))
        checks_s.append(elapsed(workload, check_units, clock))
        check_s = median(checks_s) if ahead else min(checks_s)
        seen = replace(seen, times_s=tuple(times_s), check_s=check_s)
    return seen


def summarise(visits: Iterable[Visit]) -> Timing:
    """Seconds per unit over visits of one workload; of several checks the best counts.

    >>> summarise([Visit(units=10, times_s=(1.0, 1.1), check_units=5, check_s=0.5),
    ...            Visit(units=10, times_s=(1.0, 1.0), check_units=5, check_s=None)])
    Timing(seconds=0.1, spread=0.0, repeats=4, doubling=2.0)
    """
    visits = tuple(visits)
    # A visit that was not ahead shows the host's time instead, where that is the longer one.
    visits = tuple(seen for seen in visits if seen.ahead) or visits
    per_unit = [time_s / seen.units for seen in visits for time_s in seen.times_s]
    ratios = [seen.doubling for seen in visits if seen.doubling is not None]
    low, quartile, middle, upper = np.quantile(per_unit, [LOW_QUANTILE, 0.25, 0.5, 0.75])
    ahead = visits[0].ahead
    return Timing(
        seconds=float(middle if ahead else low),
        spread=float((upper - quartile) / (2 * middle) if ahead else quartile / low - 1),
        repeats=len(per_unit),
        doubling=min(ratios, key=lambda ratio: abs(math.log(ratio / 2)), default=None),
    )
