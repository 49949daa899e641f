"""`tokroof calibrate --residuals PROFILE`: what a profile makes of the samples it was fitted to.

They are in the fit, so this is no test of its predictions; `tokroof validate` is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

import numpy as np

from calibrate.fit.calibration import stored_sample
from calibrate.fit.residuals import Residual, residuals
from calibrate.samples import REFERENCE, Sample, drift
from model.commands.table import table
from model.errors import InputError
from model.machine.profile import Profile
from model.machine.profile_store import choose_profile
from model.units import MICRO

WORST = 12
"""Rows that are shown as text."""


def probes(profile: Profile) -> tuple[Sample, ...]:
    """The samples of a calibration; none where a profile was fitted to published runs.

    Raises:
        InputError: a sample that cannot be read; its place in the profile is named.
    """
    where = f"profile {profile.header.name}"
    return tuple(
        stored_sample(stored, f"{where}: samples[{index}]")
        for index, stored in enumerate(profile.samples)
        if "probe" in stored
    )


def visits(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """The visits of the reference kernel, in the order of time."""
    return tuple(sample for sample in samples if sample.probe == REFERENCE)


def execute(spec: str, *, as_json: bool) -> int:
    """Print how near each kind of sample is met, how far the machine drifted, and the worst rows.

    Raises:
        InputError: no such profile, or one that keeps no samples of its own.
    """
    profile = choose_profile(spec).profile
    samples = probes(profile)
    found, reference = residuals(profile, samples), visits(samples)
    if not found:
        wrong = "keeps no samples of its own"
        raise InputError(profile.header.name, wrong, "give a profile that `calibrate` wrote")
    drifted = drift(samples) if len(reference) > 1 else None
    if as_json:
        document = {
            "name": profile.header.name,
            "residuals": [{**asdict(each), "error": each.error} for each in found],
            "reference": [{"at_s": each.at, "seconds": each.seconds} for each in reference],
            "drift": drifted,
        }
        print(json.dumps(document, indent=2))
        return 0
    for probe, group in groupby(sorted(found, key=lambda each: each.probe), lambda e: e.probe):
        errors = [abs(each.error) for each in group]
        print(f"{probe}: half of {len(errors)} samples within {100 * np.median(errors):.1f} %")
    if drifted is not None:
        print(f"drifted by {100 * drifted:.0f} % over {len(reference)} visits of one kernel")
    print()
    print(worst_text(found))
    return 0


def worst_text(found: Sequence[Residual]) -> str:
    """The samples that are missed by most, the worst first, and how many are not shown.

    Those of which most is priced apart are left out: next to nothing is left of them to be missed.
    """
    telling = [each for each in found if each.apart_s <= each.measured_s]
    worst = sorted(telling, key=lambda each: abs(math.log(each.predicted_s / each.measured_s)))
    shown = worst[: -WORST - 1 : -1]
    rows = [
        [
            each.probe,
            each.settings,
            f"{each.apart_s / MICRO:.4g}",
            f"{each.measured_s / MICRO:.4g}",
            f"{each.predicted_s / MICRO:.4g}",
            f"{100 * each.error:+.1f}",
        ]
        for each in shown
    ]
    text = table(["probe", "settings", "apart us", "net us", "predicted us", "error %"], rows)
    more = len(found) - len(shown)
    left = f"; {more} more are nearer or mostly priced apart: --json has all" if more else ""
    return f"{text}\nnet of what is priced apart: the floor of kernels, scores in memory{left}"
