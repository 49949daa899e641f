"""How far the published profiles err on what they were not fitted on.

Two splits: whole models within a chip (a model is left out of its chip's runs, by the linearised
fit, which the tests compare with fits that really leave models out), and whole chips (the profile
of a chip is scaled from all others, as for a chip that nobody measured).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from calibrate.fit.published.joint_fit import JointFit, joint_fit
from calibrate.fit.published.profiles import scaled_profile
from calibrate.fit.published.timings import Timing, kernels_of, timings
from calibrate.published.evidence import shipped_runs
from model.machine.profile import Profile
from model.prediction.prediction import interval
from model.strategies.plain import Plain
from model.units import Array


@cache
def learned(runtime: str) -> tuple[Timing, ...]:
    """The shipped runs that a fit for this runtime may learn from."""
    return timings(shipped_runs(), kernels_of(runtime))


@cache
def whole_fit(runtime: str) -> JointFit:
    """The joint fit of all chips under this runtime."""
    return joint_fit(learned(runtime), kernels_of(runtime))


def errors_of_models(runtime: str) -> Array:
    """Errors in logs of every run, its model left out of its chip's runs."""
    groups = [f"{each.chip.label} {each.target.architecture.name}" for each in learned(runtime)]
    return whole_fit(runtime).left_out(groups)


@cache
def errors_of_chips(runtime: str) -> tuple[tuple[float, bool], ...]:
    """Error of every run with its chip left out, and whether the interval holds it."""
    found: list[tuple[float, bool]] = []
    for label in whole_fit(runtime).labels:
        chip = next(each.chip for each in learned(runtime) if each.chip.label == label)
        profile = scaled_profile(chip, runtime)
        found += [compared(each, profile) for each in learned(runtime) if each.chip.label == label]
    return tuple(found)


def compared(timing: Timing, profile: Profile) -> tuple[float, bool]:
    """One run against one profile: the error in logs, and whether it lies in the interval."""
    plain = Plain()
    predicted = float(plain.round(timing.target, profile.machine, timing.context).round_s)
    drawn = plain.round(timing.target, profile.sampled_machine, timing.context).round_s
    least, most = interval(predicted, drawn, profile.header.residual_log)
    return math.log(timing.seconds / predicted), least <= timing.seconds <= most


def relative(errors: Array) -> Array:
    """Errors of tokens per second, of which the measured ones are the base."""
    return np.abs(np.expm1(errors))


def held_out_rows(runtime: str) -> list[tuple[str, int, float, float]]:
    """For each split its name, number of runs, and median and 90th percentile of the error.

    A chip that stands alone under its runtime has no others to be told from.
    """
    splits = [("model", errors_of_models(runtime))]
    if len(whole_fit(runtime).labels) > 1:
        chips = np.array([error for error, _ in errors_of_chips(runtime)])
        splits.append(("chip", chips))
    return [
        (
            f"{runtime}, {name} left out",
            len(errors),
            float(np.median(relative(errors))),
            float(np.quantile(relative(errors), 0.9)),
        )
        for name, errors in splits
    ]
