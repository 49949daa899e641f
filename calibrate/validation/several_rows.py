r"""How far rounds of several rows stray from their prediction, beyond what plain passes tell.

A plain pass shows one kernel for each format. A round of several rows rests on rates that were
measured on other chips, on what an engine waits for between its passes, and on the progress of the
run, which is a mean. Studies err together in these, so a study of many runs says little more than
one of a few: each counts as the root of its runs. With e the error of a run in logs and
:math:`\sigma` the width of its prediction without this term, the term is the smallest
:math:`\sigma_{rows}` for which

.. math:: \sum_i n_{study(i)}^{-1/2}\,
          [\, |e_i| \le z \sqrt{\sigma_i^2 + \sigma_{rows}^2} \,]
          \;\ge\; 0.9 \sum_i n_{study(i)}^{-1/2}

How well it holds is told by leaving each study out in turn. Where it stops holding: a study whose
engine differs in kind (reads the weights of a mixture otherwise, compiles its rounds) lies outside
whatever the others say, and there are few studies.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import final

import numpy as np

from calibrate.published.profiles import RunMachine
from calibrate.published.refusal import Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.validation.score import MachineFor, score
from model.machine.profile import Profile
from model.prediction.prediction import Z_90

COVERAGE = 0.9
PLAIN = "plain"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StudyError:
    """Of one run: its study, its error in logs, and the standard deviation that was predicted."""

    study: str
    error_log: float
    width_log: float

    def is_covered(self, several_rows_log: float = 0.0) -> bool:
        """Whether the 90 % interval holds it, widened by so much."""
        return abs(self.error_log) <= Z_90 * math.hypot(self.width_log, several_rows_log)


def errors_of_several_rows(
    runs: Iterable[PublishedRun], machine_for: MachineFor
) -> tuple[StudyError, ...]:
    """The errors of all runs of several rows that are predicted, by profiles without the term."""

    def machine_without(run: PublishedRun) -> RunMachine | Refusal:
        found = machine_for(run)
        return found if isinstance(found, Refusal) else replace(found, profile=_bare(found.profile))

    found: list[StudyError] = []
    for run in runs:
        if run.strategy == PLAIN:
            continue
        scored = score(run, machine_without).comparison
        if scored.measured is None or scored.interval_90 is None:
            continue
        low, high = (math.log(end) for end in scored.interval_90)
        error_log, width_log = math.log(scored.measured) - (low + high) / 2.0, (high - low) / 2.0
        study = study_of(run)
        found.append(StudyError(study=study, error_log=error_log, width_log=width_log / Z_90))
    return tuple(found)


def study_of(run: PublishedRun) -> str:
    """The repository or page of a run, whatever its commit or file."""
    return run.source.partition("@")[0].partition(" ")[0]


@lru_cache(maxsize=512)
def _bare(profile: Profile) -> Profile:
    return replace(profile, header=replace(profile.header, several_rows_residual_log=0.0))


def several_rows_log(errors: Sequence[StudyError]) -> float:
    """The width that makes intervals hold nine in ten, by studies; 0 where they do already.

    >>> near = StudyError(study="a", error_log=0.01, width_log=0.05)
    >>> far = StudyError(study="b", error_log=0.3 * Z_90, width_log=0.0)
    >>> several_rows_log([near]), round(several_rows_log([near, far]), 6)
    (0.0, 0.3)
    """
    runs = Counter(each.study for each in errors)
    weights = np.array([runs[each.study] ** -0.5 for each in errors])
    reached = np.square([each.error_log / Z_90 for each in errors])
    widths = np.square([each.width_log for each in errors])
    needed = np.sqrt(np.maximum(reached - widths, 0.0))
    order = np.argsort(needed)
    share = np.cumsum(weights[order]) / np.sum(weights)
    return float(needed[order][np.searchsorted(share, COVERAGE)])


def left_out_coverage(errors: Sequence[StudyError]) -> dict[str, float]:
    """Of each study the share that the term of all other studies covers."""
    covered: dict[str, float] = {}
    for study in sorted({each.study for each in errors}):
        others = several_rows_log([each for each in errors if each.study != study])
        own = [each.is_covered(others) for each in errors if each.study == study]
        covered[study] = float(np.mean(own))
    return covered
