"""What of a plan is still to do, and what its runs say of the device's drift."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias, final

from calibrate.campaign.plan import SURELY_MADE, PlannedRun
from calibrate.environment import Environment
from calibrate.repeats import apart, fastest_host_s, undisturbed
from calibrate.run_record import Run
from calibrate.run_settings import Settings

Key: TypeAlias = tuple[str, str, int, Settings, int, bool]
"""Target, format, context, settings, the answer's length if it is denoised, and whether mlx-vlm
decodes: runs with the same key are repeats."""


def planned_key(run: PlannedRun) -> Key:
    """The key that the record of a planned run will have."""
    answer = run.tokens if run.settings.block else 0
    return run.target, run.format_name, run.context, run.recorded, answer, run.by_mlx_vlm


def recorded_key(run: Run) -> Key:
    """The key of a record."""
    answer, by_mlx_vlm = run.tokens if run.block else 0, bool(run.library)
    place = run.target, run.target_format, run.context_tokens
    return *place, run.settings, answer, by_mlx_vlm


@final
class Agenda:
    """The planned runs in their order, beside the records of this environment.

    Each record stands for one run, so repeats are made as often as they are planned, less those
    that are of no use because earlier makes agree. It is told of every further record. Makes beside
    a host that was slower than it can be, as far as these records tell, count for nothing.
    """

    def __init__(
        self, planned: Sequence[PlannedRun], finished: Iterable[Run], environment: Environment
    ) -> None:
        self._makes: dict[Key, list[Run]] = defaultdict(list)
        self.left: list[PlannedRun] = []
        """What is neither recorded nor of no use, as far as the records tell."""
        self.needless = 0
        """Planned runs that were left out as of no use."""
        own = [run for run in finished if run.environment == environment]
        self._fastest_s = fastest_host_s(own)
        recorded: dict[Key, deque[Run]] = defaultdict(deque)
        for run in own:
            recorded[recorded_key(run)].append(run)
        for run in planned:
            key = planned_key(run)
            if self.leave_out(run) is not None:
                continue
            if recorded[key]:
                self._makes[key].append(recorded[key].popleft())
            else:
                self.left.append(run)

    def add(self, run: Run) -> None:
        """A run was made."""
        self._fastest_s = min(self._fastest_s, fastest_host_s([run]))
        self._makes[recorded_key(run)].append(run)

    def leave_out(self, run: PlannedRun) -> float | None:
        """Leave the run out if one more make is of no use: how near the two fastest are, or None.

        Asked when the run is reached, for the makes so far decide.
        """
        makes = undisturbed(self._makes[planned_key(run)], self._fastest_s)
        if not run.agreement or min(run.made_before, len(makes)) < SURELY_MADE:
            return None
        found = apart(makes)
        if found > run.agreement:
            return None
        self.needless += 1
        return found


def drifts(runs: Iterable[Run]) -> list[tuple[str, float]]:
    """By how much repeats of a plain run differ: the last round over the first, less one.

    One entry for each target, format and context that was decoded plainly more than once, beside an
    undisturbed host.
    """
    made = list(runs)
    repeats: dict[Key, list[Run]] = defaultdict(list)
    for run in undisturbed(made, fastest_host_s(made)):
        if run.strategy == "plain":
            repeats[recorded_key(run)].append(run)
    return [
        (
            f"{first.target} {first.target_format} at {first.context_tokens}",
            same[-1].typical_round_s / first.typical_round_s - 1.0,
        )
        for same in repeats.values()
        if len(same) > 1
        for first in same[:1]
    ]
