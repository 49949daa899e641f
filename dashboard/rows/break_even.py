"""The map of speedups as rows: one for each draft length and acceptance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

from model.commands.break_even_answer import Solved
from model.prediction.prediction import TIE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupCell:
    """The speedup of a draft length at an acceptance.

    Beside it what that draft length needs with its 90 % interval (None: no acceptance wins, or
    none does surely), and what is had, where anybody said so.
    """

    draft_length: int
    acceptance: float
    speedup: float
    needed_acceptance: float | None
    needed_low: float | None
    needed_high: float | None
    your_acceptance: float | None
    your_low: float | None
    your_high: float | None
    your_speedup: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The acceptances at which the speedup of a draft length lies in one step."""

    draft_length: int
    low: float
    high: float
    speedup: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LengthRow:
    """What a draft length needs, and what is had; None where nothing wins, or nobody knows.

    `needed_low` and `needed_high` end the 90 % interval of the acceptance needed.
    """

    draft_length: int
    needed_acceptance: float | None
    needed_low: float | None
    needed_high: float | None
    best_speedup: float
    your_acceptance: float | None
    your_low: float | None
    your_high: float | None
    your_speedup: float | None

    @property
    def in_words(self) -> str:
        """The row for who cannot see the chart."""
        needed = self.needed_acceptance
        said = "no acceptance wins"
        if needed is not None:
            interval = needed_text(needed, self.needed_low, self.needed_high)
            said = f"needs {interval}"
        return f"k={self.draft_length} {said}, at most {self.best_speedup:.2f} times plain"


def needed_text(needed: float, low: float | None, high: float | None) -> str:
    """An acceptance needed with its 90 % interval, as short as it can be said.

    >>> needed_text(0.74, 0.69, 0.79), needed_text(0.74, 0.5, 0.8), needed_text(0.9, 0.7, None)
    ('0.74 ± 0.05', '0.74 (0.50 to 0.80)', '0.90 (0.70 or more; none is a sure win)')
    """
    low = 0.0 if low is None else low
    if high is None:
        return f"{needed:.2f} ({low:.2f} or more; none is a sure win)"
    below, above = needed - low, high - needed
    if abs(below - above) < 0.005:
        return f"{needed:.2f} ± {above:.2f}"
    return f"{needed:.2f} ({low:.2f} to {high:.2f})"


def length_rows(solved: Solved) -> tuple[LengthRow, ...]:
    """One row for each draft length."""
    have = solved.have or (None,) * len(solved.rows)
    return tuple(
        LengthRow(
            draft_length=row.draft_length,
            needed_acceptance=row.break_even_acceptance,
            needed_low=row.needed_low,
            needed_high=row.needed_high,
            best_speedup=row.best_speedup,
            your_acceptance=had.acceptance if had else None,
            your_low=had.low if had else None,
            your_high=had.high if had else None,
            your_speedup=had.speedup if had else None,
        )
        for row, had in zip(solved.rows, have, strict=True)
    )


def speedup_cells(solved: Solved) -> tuple[SpeedupCell, ...]:
    """One cell for each draft length and acceptance of the map."""
    lengths = length_rows(solved)
    return tuple(
        SpeedupCell(
            draft_length=length.draft_length,
            acceptance=row.acceptance,
            speedup=speedup,
            needed_acceptance=length.needed_acceptance,
            needed_low=length.needed_low,
            needed_high=length.needed_high,
            your_acceptance=length.your_acceptance,
            your_low=length.your_low,
            your_high=length.your_high,
            your_speedup=length.your_speedup,
        )
        for row in solved.map
        for length, speedup in zip(lengths, row.speedups, strict=True)
    )


def bands(cells: Sequence[SpeedupCell]) -> tuple[Band, ...]:
    """The map as bands between the steps of speedup, from the lowest acceptance up.

    Between two cells the speedup is taken as straight, so an edge lies where it meets the step.
    """
    by_length: dict[int, list[tuple[float, float]]] = {}
    for cell in cells:
        by_length.setdefault(cell.draft_length, []).append((cell.acceptance, cell.speedup))
    found: list[Band] = []
    for length, points in by_length.items():
        low, step = points[0][0], _step(points[0][1])
        for (before, slow), (after, fast) in pairwise(points):
            # Steps that lie between two cells, in the order in which they are met.
            crossed = [each for each in SPEEDUP_STEPS if min(slow, fast) < each <= max(slow, fast)]
            for edge in sorted(crossed, reverse=fast < slow):
                at = before + (after - before) * (edge - slow) / (fast - slow)
                found.append(Band(draft_length=length, low=low, high=at, speedup=STEP_NAMES[step]))
                low, step = at, step + (1 if fast > slow else -1)
        found.append(
            Band(draft_length=length, low=low, high=points[-1][0], speedup=STEP_NAMES[step])
        )
    return tuple(found)


def _step(speedup: float) -> int:
    return sum(speedup >= edge for edge in SPEEDUP_STEPS)


SPEEDUP_STEPS = (0.5, 0.8, 1.0 - TIE, 1.0 + TIE, 1.25, 1.6, 2.0)
STEP_NAMES = (
    f"below {SPEEDUP_STEPS[0]:g}",
    *(f"{low:g} to {high:g}" for low, high in pairwise(SPEEDUP_STEPS)),
    f"above {SPEEDUP_STEPS[-1]:g}",
)
"""Steps of speedup, and what is below, between and above them."""
