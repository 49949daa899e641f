"""Predictions beside measurements, row by row and summed up by group.

A strategy run is predicted from its own progress, the tokens per pass it really had: cost is what
the simulator claims to know, acceptance is an input. Its speedup is scored against plain runs of
the same target in the same file, where there are any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from calibrate.known_plans import alone
from calibrate.repeats import fastest, key_of
from calibrate.run_record import Run
from calibrate.run_strategy import PREDICTED, strategy_of
from calibrate.speedups import paired_speedups
from model.cost.forward import Bound
from model.errors import InputError
from model.machine.profile import Profile
from model.prediction.prediction import TIE, Prediction, predict

THROUGHPUT = "tokens_per_s"
SPEEDUP = "speedup"
KNOWN_PLANS = "nearly all rounds found attention planned by an earlier run"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One measured quantity and its prediction, or why there is none.

    `error` is predicted over measured, less one. `groups` are the names it is summed up under.
    """

    id: str
    label: str
    quantity: str
    measured: float | None
    predicted: float | None
    interval_90: tuple[float, float] | None
    bound: Bound | None
    verdict: str | None
    refused: str | None
    groups: tuple[str, ...]

    @property
    def error(self) -> float | None:
        """Relative error of the prediction; None where it was refused or nothing was measured."""
        if self.predicted is None or self.measured is None:
            return None
        return self.predicted / self.measured - 1.0

    @property
    def covered(self) -> bool:
        """Whether the measurement lies in the 90 % interval."""
        if self.interval_90 is None or self.measured is None:
            return False
        return self.interval_90[0] <= self.measured <= self.interval_90[1]

    @property
    def sign_right(self) -> bool | None:
        """Whether win or loss was told right; None for a measured tie or another quantity."""
        if self.quantity != SPEEDUP or self.predicted is None or self.measured is None:
            return None
        if abs(self.measured - 1.0) <= TIE:
            return None
        return (self.predicted > 1.0) == (self.measured > 1.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Errors of all comparisons of one group; None where nothing was predicted or decided."""

    group: str
    n: int
    predicted: int
    refused: int
    median_error: float | None
    p90_error: float | None
    worst_error: float | None
    coverage_90: float | None
    sign_accuracy: float | None


def compare_runs(runs: Iterable[Run], profile: Profile) -> list[Comparison]:
    """Throughput of every run, and speedup of every strategy run that has its plain run.

    A run is predicted as if it were alone in its process: rounds that found what an earlier run
    had planned are left out (:mod:`calibrate.known_plans`). Of repeats the fastest counts, and of
    their speedups the middle one (:mod:`calibrate.speedups`).
    """
    made = list(runs)
    cut = [
        (run, own) for run, own in zip(made, alone(made), strict=True) if run.strategy in PREDICTED
    ]
    whole = [own for _, own in cut if own is not None]
    listed, gained = fastest(whole), paired_speedups(whole)
    told = {key_of(run) for run in listed}
    lost = fastest(run for run, own in cut if own is None and key_of(run) not in told)
    comparisons = [
        comparison(run, THROUGHPUT, None, (None, None), None, KNOWN_PLANS) for run in lost
    ]
    for run in listed:
        prediction, refused = attempt(run, profile)
        speed, gain = (None, None), (None, None)
        if prediction is not None:
            speed = prediction.tokens_per_s, prediction.interval_90
            gain = prediction.speedup, prediction.speedup_interval_90
        own = run.tokens_per_s
        comparisons.append(comparison(run, THROUGHPUT, own, speed, prediction, refused))
        ratio = gained.get(key_of(run))
        if ratio is not None:
            comparisons.append(comparison(run, SPEEDUP, ratio, gain, prediction, refused))
    return comparisons


def attempt(run: Run, profile: Profile) -> tuple[Prediction | None, str | None]:
    """The prediction of a run, or why it is refused: guessing would be worse."""
    try:
        return predict_run(run, profile), None
    except InputError as error:
        return None, str(error)


def predict_run(run: Run, profile: Profile) -> Prediction:
    """Predict a run from its settings and progress; nothing of its times is used.

    Raises:
        InputError: the target or draft is not known, or was run in a format never measured.
    """
    strategy, target, context = strategy_of(run, profile.machine)
    return predict(strategy, target, profile, context=context)


def comparison(
    run: Run,
    quantity: str,
    measured: float | None,
    predicted: tuple[float | None, tuple[float, float] | None],
    prediction: Prediction | None,
    refused: str | None,
) -> Comparison:
    """One quantity of a run beside its prediction and interval."""
    return Comparison(
        id=run.id,
        label=label(run),
        quantity=quantity,
        measured=measured,
        predicted=predicted[0],
        interval_90=predicted[1],
        bound=prediction and prediction.bound,
        verdict=prediction and prediction.verdict,
        refused=refused,
        groups=groups(run, quantity),
    )


def label(run: Run) -> str:
    """A run in a few words."""
    return f"{run.target} {run.target_format} {run.text}"


def groups(run: Run, quantity: str) -> tuple[str, ...]:
    """The groups a run is summed up under."""
    itself = (run.draft, run.draft_format) == (run.target, run.target_format)
    kind = f"{run.strategy}, own draft" if itself else run.strategy
    forced = run.forced_acceptance is not None or run.steps or run.committed is not None
    kind = f"{kind}, forced" if forced else kind
    return (
        quantity,
        f"{quantity}, {kind}",
        f"{quantity}, {run.target}",
        f"{quantity}, {run.target}, {kind}",
        f"{quantity}, {run.target_format}",
    )


def summarise(comparisons: Sequence[Comparison]) -> list[Group]:
    """Errors by group, sorted by name: a quantity comes before its parts."""
    members: dict[str, list[Comparison]] = defaultdict(list)
    for comparison in comparisons:
        for name in comparison.groups:
            members[name].append(comparison)
    return [summary(name, each) for name, each in sorted(members.items())]


def summary(name: str, members: Sequence[Comparison]) -> Group:
    """One group: medians and tails of absolute errors, coverage, and signs told right."""
    errors = [abs(each.error) for each in members if each.error is not None]
    covered = [each.covered for each in members if each.error is not None]
    signs = [each.sign_right for each in members if each.sign_right is not None]
    return Group(
        group=name,
        n=len(members),
        predicted=len(errors),
        refused=len(members) - len(errors),
        median_error=float(np.median(errors)) if errors else None,
        p90_error=float(np.quantile(errors, 0.9)) if errors else None,
        worst_error=max(errors) if errors else None,
        coverage_90=float(np.mean(covered)) if covered else None,
        sign_accuracy=float(np.mean(signs)) if signs else None,
    )
