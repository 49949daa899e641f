"""The width of rounds of several rows: estimated anew from the shipped runs, studies left out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from calibrate.fit.published.profiles import SEVERAL_ROWS_LOG
from calibrate.published.evidence import shipped_runs
from calibrate.published.profiles import profile_for
from calibrate.validation.several_rows import (
    StudyError,
    errors_of_several_rows,
    left_out_coverage,
    several_rows_log,
)


@pytest.fixture(scope="module")
def errors() -> tuple[StudyError, ...]:
    return errors_of_several_rows(shipped_runs(), profile_for)


def test_the_shipped_width_is_what_studies_say(errors: tuple[StudyError, ...]) -> None:
    assert len({each.study for each in errors}) >= 10
    assert several_rows_log(errors) == pytest.approx(SEVERAL_ROWS_LOG, abs=0.02)


def test_no_study_alone_decides_it(errors: tuple[StudyError, ...]) -> None:
    widths = [
        several_rows_log([each for each in errors if each.study != study])
        for study in {each.study for each in errors}
    ]
    assert min(widths) > 0.6 * SEVERAL_ROWS_LOG
    assert max(widths) < 1.6 * SEVERAL_ROWS_LOG


def test_intervals_hold_nine_in_ten_runs_of_studies_that_were_left_out(
    errors: tuple[StudyError, ...],
) -> None:
    """Runs, and studies of at least a dozen; a study of one run is in or out as it happens."""
    runs, covered = Counter(each.study for each in errors), left_out_coverage(errors)
    of_all = sum(runs[study] * share for study, share in covered.items()) / sum(runs.values())
    assert 0.85 <= of_all <= 0.96
    larger = [covered[study] for study, count in runs.items() if count >= 12]
    assert len(larger) >= 6
    assert 0.85 <= float(np.mean(larger)) <= 0.95
