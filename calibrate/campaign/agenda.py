"""What of a plan is still to do, and what its runs say of the device's drift."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from calibrate.campaign.plan import PlannedRun
from calibrate.environment import Environment
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


def remaining(
    planned: Sequence[PlannedRun], finished: Iterable[Run], environment: Environment
) -> list[PlannedRun]:
    """The planned runs that no record of this environment stands for, in their order.

    Each record stands for one run, so repeats are made as often as they are planned.
    """
    done = Counter(recorded_key(run) for run in finished if run.environment == environment)
    left: list[PlannedRun] = []
    for run in planned:
        key = planned_key(run)
        if done[key]:
            done[key] -= 1
        else:
            left.append(run)
    return left


def drifts(runs: Iterable[Run]) -> list[tuple[str, float]]:
    """By how much repeats of a plain run differ: the last round over the first, less one.

    One entry for each target, format and context that was decoded plainly more than once.
    """
    repeats: dict[Key, list[Run]] = defaultdict(list)
    for run in runs:
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
