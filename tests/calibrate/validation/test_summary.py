"""Scores summed up: planted errors come out, refusals are counted, advice on k has its price."""

from __future__ import annotations

import pytest

from calibrate.comparison import Group
from calibrate.validation.score import Score, score
from calibrate.validation.summary import Summary, summary_of
from tests.calibrate.published.published_run import PLAIN, SPECULATIVE, published
from tests.calibrate.validation.planted import on_m3, score_with


def group(summary: Summary, name: str) -> Group:
    return next(each for each in summary.groups if each.group == name)


def swept(k: int, measured: float, predicted: float, **changed: str) -> Score:
    cells = {"k": str(k), "speedup": str(measured), "id": f"K{k}", "tokens_per_pass": "1.9"}
    return score_with(published(SPECULATIVE | cells | changed), predicted)


def test_planted_errors_are_the_medians() -> None:
    rates = (10.1, 10.2, 9.0, 10.5, 12.0)  # 1, 2, 10, 5 and 20 % of 10
    scores = [
        score_with(published(PLAIN | {"id": f"P{rate}", "decode_tok_s": "10"}), rate, width=1.06)
        for rate in rates
    ]
    found = group(summary_of(scores), "tokens_per_s, plain")
    assert (found.n, found.predicted, found.refused) == (5, 5, 0)
    assert found.median_error == pytest.approx(0.05)
    # Between the fourth and the fifth of five: 0.1 + 0.6 * 0.1
    assert found.p90_error == pytest.approx(0.16)
    assert found.worst_error == pytest.approx(0.2)
    # 9.0 * 1.06 and 12.0 / 1.06 do not reach 10
    assert found.coverage_90 == pytest.approx(3 / 5)
    assert found.sign_accuracy is None


def test_signs_are_told_outside_a_tie_alone() -> None:
    pairs = ((1.5, 1.1), (0.8, 0.9), (0.7, 1.2), (1.02, 0.9))  # the last one is a tie
    scores = [
        score_with(published(SPECULATIVE | {"id": f"S{n}", "speedup": str(measured)}), predicted)
        for n, (measured, predicted) in enumerate(pairs)
    ]
    assert group(summary_of(scores), "speedup").sign_accuracy == pytest.approx(2 / 3)


def test_rates_and_speedups_are_never_in_one_group_but_all() -> None:
    summary = summary_of(
        [score_with(published(), 20.0), score_with(published(SPECULATIVE, id="X2"), 1.1)]
    )
    assert [each.n for each in summary.groups if each.group == "all"] == [2]
    others = [each for each in summary.groups if each.group != "all"]
    assert all(each.n == 1 for each in others)
    assert all(each.group.startswith(("tokens_per_s", "speedup")) for each in others)


def test_refusals_are_counted_by_reason_and_take_no_part_in_errors() -> None:
    summary = summary_of(
        [
            score_with(published(), 18.0),
            score(published(PLAIN, id="X2", trust="low"), on_m3),
            score(published(PLAIN, id="X3", trust="low"), on_m3),
            score(published(PLAIN, id="X4", quant="some mix"), on_m3),
        ]
    )
    assert (summary.runs, summary.share_predicted) == (4, 0.25)
    assert [(each.reason, each.runs) for each in summary.refusals] == [
        ("low trust", 2),
        ("unknown format", 1),
    ]
    assert all(each.explanation for each in summary.refusals)
    found = group(summary, "tokens_per_s")
    assert (found.n, found.predicted, found.refused) == (4, 1, 3)
    assert found.median_error == pytest.approx(0.0, abs=1e-12)


def test_regret_is_what_our_advice_gives_away() -> None:
    # We advise k = 4; the best is k = 2: 1 - 1.2 / 1.5
    scores = [swept(1, 1.3, 1.2), swept(2, 1.5, 1.3), swept(4, 1.2, 1.6)]
    regret = summary_of(scores).regret
    assert regret.sweeps == 1
    assert regret.median == pytest.approx(0.2)
    assert regret.worst == pytest.approx(0.2)


def test_right_advice_costs_nothing_whatever_the_scale_of_its_error() -> None:
    scores = [swept(1, 1.3, 2.6), swept(2, 1.5, 3.0), swept(4, 1.2, 2.4)]
    assert summary_of(scores).regret.median == 0.0


def test_runs_of_other_tasks_are_another_sweep() -> None:
    scores = [
        *(swept(1, 1.3, 1.2, task="code"), swept(2, 1.5, 1.1, task="code")),
        *(swept(1, 1.0, 1.2, task="prose"), swept(2, 0.9, 1.1, task="prose")),
    ]
    regret = summary_of(scores).regret
    assert regret.sweeps == 2
    assert regret.worst == pytest.approx(1 - 1.3 / 1.5)


def test_one_length_or_two_runs_of_one_are_no_sweep() -> None:
    assert summary_of([swept(1, 1.3, 1.2)]).regret.sweeps == 0
    assert summary_of([swept(2, 1.3, 1.2), swept(2, 1.4, 1.2)]).regret.sweeps == 0
