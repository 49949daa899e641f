"""What rounds of several rows stray: planted widths are found, and studies count, not runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrate.validation.several_rows import StudyError, left_out_coverage, several_rows_log


def drawn(width_log: float, planted_log: float, *, studies: int, runs: int) -> list[StudyError]:
    generator = np.random.default_rng(7)
    sigma = float(np.hypot(width_log, planted_log))
    return [
        StudyError(study=str(study), error_log=float(error), width_log=width_log)
        for study in range(studies)
        for error in sigma * generator.standard_normal(runs)
    ]


@pytest.mark.parametrize("planted_log", [0.05, 0.1, 0.3])
def test_a_planted_width_is_found(planted_log: float) -> None:
    found = several_rows_log(drawn(0.04, planted_log, studies=40, runs=100))
    assert found == pytest.approx(planted_log, rel=0.05)


def test_what_was_predicted_wide_enough_needs_no_more() -> None:
    errors = [replace(each, width_log=1.0) for each in drawn(0.1, 0.1, studies=4, runs=50)]
    assert several_rows_log(errors) == 0.0


def test_left_out_studies_are_covered_nine_times_in_ten() -> None:
    covered = left_out_coverage(drawn(0.04, 0.1, studies=20, runs=100))
    assert len(covered) == 20
    assert np.mean(list(covered.values())) == pytest.approx(0.9, abs=0.02)


def test_a_study_counts_as_the_root_of_its_runs() -> None:
    """Of 100 good runs in one study and 4 bad ones in another, the bad ones weigh 2 of 12."""
    good = [StudyError(study="good", error_log=0.0, width_log=0.1)] * 100
    bad = [StudyError(study="bad", error_log=0.5, width_log=0.1)] * 4
    assert several_rows_log([*good, *bad]) > 0.25
    assert several_rows_log([*good, *[replace(each, study="good") for each in bad]]) == 0.0
