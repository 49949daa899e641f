"""Predictions beside runs: errors, coverage, signs, groups, and refusals that say why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibrate.comparison import SPEEDUP, THROUGHPUT, Comparison, compare_runs, summarise
from calibrate.run_record import Run
from calibrate.run_strategy import strategy_of
from model.catalog import packaged_profile_text
from model.machine.profile import Profile
from model.machine.profile_file import profile_from_json
from model.strategies.block_diffusion import BlockDiffusion
from model.strategies.prompt_lookup import PromptLookup
from tests.calibrate.test_run_timings import BLANK


@pytest.fixture(scope="module")
def m3() -> Profile:
    return profile_from_json(packaged_profile_text("m3-10core-16gb"), "m3")


PLAIN = replace(
    BLANK,
    id="plain",
    strategy="plain",
    draft="",
    draft_format="",
    draft_length=0,
    matches_plain=None,
)


def comparison(predicted: float | None, measured: float, quantity: str = SPEEDUP) -> Comparison:
    return Comparison(
        id="x",
        label="x",
        quantity=quantity,
        measured=measured,
        predicted=predicted,
        interval_90=None if predicted is None else (0.9 * predicted, 1.1 * predicted),
        bound=None,
        verdict=None,
        refused="no law" if predicted is None else None,
        groups=("all",),
    )


def test_a_run_as_fast_as_predicted_has_no_error(m3: Profile) -> None:
    strategy, target, context = strategy_of(PLAIN, m3.machine)
    round_s = float(strategy.round(target, m3.machine, context).round_s)
    (only,) = compare_runs([replace(PLAIN, round_s=(round_s,) * 8)], m3)
    assert only.quantity == THROUGHPUT
    assert only.error == pytest.approx(0.0, abs=1e-9)
    assert only.covered


def test_of_repeats_the_fastest_counts_and_the_middle_one_of_their_speedups(m3: Profile) -> None:
    """Of 2, 1.6 and 0.5 the middle one, and not the fastest over the fastest, which is 0.8."""
    runs: list[Run] = []
    for number, (plain_s, round_s) in enumerate(((0.4, 0.4), (0.2, 0.25), (0.1, 0.4))):
        runs.append(replace(PLAIN, id=f"plain-{number}", round_s=(plain_s,) * 8))
        own = replace(BLANK, id=f"own-{number}", round_s=(round_s,) * 8, accepted=(1,) * 8)
        runs.append(own)
    plain, own, speedup = compare_runs(runs, m3)
    assert (plain.id, own.id) == ("plain-2", "own-1")
    assert (own.quantity, speedup.quantity) == (THROUGHPUT, SPEEDUP)
    assert own.measured == pytest.approx(8.0)
    assert speedup.measured == pytest.approx(1.6)


def test_a_run_in_another_environment_is_no_repeat(m3: Profile) -> None:
    elsewhere = replace(PLAIN, id="b", environment=replace(PLAIN.environment, gpu_cores=99))
    assert [each.id for each in compare_runs([PLAIN, elsewhere], m3)] == [PLAIN.id, "b"]


EVERY = (
    dict[str, object](strategy="batch", batch=4),
    dict[str, object](strategy="canvas", canvas=32),
    dict[str, object](strategy="prompt-lookup", draft_length=2, ngram=3, proposed=(2,) * 8),
    dict[str, object](strategy="layer-skip", draft_length=2, skipped_mlp=(3, 4)),
    dict[str, object](strategy="speculative", draft="llama-3.2-1b", draft_format="4bit")
    | {"draft_length": 2, "forced_acceptance": 0.5},
)


@pytest.mark.parametrize("changes", EVERY, ids=lambda each: str(each["strategy"]))
def test_every_strategy_is_priced_as_it_was_run(m3: Profile, changes: dict[str, Any]) -> None:
    """A run whose rounds last what the model says of its own progress has no error."""
    drafted = changes.get("draft_length", 0)
    rounds = {"round_s": (1.0,) * 8, "accepted": (1 if drafted else 0,) * 8}
    run = replace(PLAIN, id="run", **rounds, **changes)
    strategy, target, context = strategy_of(run, m3.machine)
    assert strategy.tokens_per_pass == pytest.approx(run.tokens_per_pass)
    assert strategy.batch == run.batch
    round_s = float(strategy.round(target, m3.machine, context).round_s)
    measured = replace(run, round_s=(round_s,) * 8)
    plain = replace(PLAIN, round_s=(0.1,) * 8)
    speed, gain = compare_runs([plain, measured], m3)[1:]
    assert speed.error == pytest.approx(0.0, abs=1e-9)
    assert gain.measured == pytest.approx(run.batch * run.tokens_per_pass * 0.1 / round_s)
    assert gain.predicted is not None
    assert ("forced" in gain.groups[1]) == (run.forced_acceptance is not None)


def test_rounds_without_a_match_are_priced_as_such(m3: Profile) -> None:
    changes: dict[str, Any] = {"strategy": "prompt-lookup", "draft_length": 3, "ngram": 2}
    accepted, proposed = (3, 0, 0, 0), (3, 0, 3, 0)
    run = replace(PLAIN, round_s=(0.1,) * 4, accepted=accepted, proposed=proposed, **changes)
    strategy, _, _ = strategy_of(run, m3.machine)
    assert isinstance(strategy, PromptLookup)
    assert strategy.match == 0.5
    assert strategy.acceptance.by_position == (0.5, 1.0, 1.0)
    assert strategy.tokens_per_pass == pytest.approx(run.tokens_per_pass)


def test_without_a_plain_run_there_is_no_speedup_to_score(m3: Profile) -> None:
    assert [each.quantity for each in compare_runs([BLANK], m3)] == [THROUGHPUT]


def test_a_baseline_is_decoded_by_the_same_library(m3: Profile) -> None:
    other = replace(PLAIN, library="mlx-vlm 0.7.10", round_s=(0.1,) * 8)
    run = replace(BLANK, round_s=(0.4,) * 8, accepted=(1,) * 8)
    assert SPEEDUP not in [each.quantity for each in compare_runs([other, run], m3)]
    by_same = replace(run, library=other.library)
    scored = {each.quantity: each for each in compare_runs([other, PLAIN, by_same], m3)}
    assert scored[SPEEDUP].measured == pytest.approx(0.5)


DIFFUSION = replace(
    PLAIN,
    target="llada2.0-mini",
    strategy="diffusion",
    block=8,
    steps=2,
    tokens=8,
    output=(1,) * 8,
    round_s=(0.1,) * 3,
    accepted=(0,) * 3,
    commits=(4, 4, 0),
    library="mlx-vlm 0.7.10",
)


@pytest.mark.parametrize(
    ("met", "expected"), [((), 1 / 3), ((False,) * 3, 0.0), ((True, False, True), 2 / 3)]
)
def test_a_denoised_answer_is_priced_with_the_shapes_it_met(
    m3: Profile, met: tuple[bool, ...], expected: float
) -> None:
    """Where the record does not say, with those of a first answer: of one block, one."""
    strategy, _, _ = strategy_of(replace(DIFFUSION, new_shapes=met), m3.machine)
    assert isinstance(strategy, BlockDiffusion)
    assert strategy.new_shapes == pytest.approx(expected)


def test_what_is_not_known_is_refused_with_its_reason(m3: Profile) -> None:
    (refused,) = compare_runs([replace(PLAIN, target="llama-9-1b")], m3)
    assert refused.predicted is None
    assert refused.error is None
    assert "model 'llama-9-1b': is not known" in str(refused.refused)


def test_errors_coverage_and_signs_are_summed_up() -> None:
    members = [
        comparison(1.1, 1.0),  # a tie: no sign to tell
        comparison(1.2, 1.5),  # covered by neither, but a win told as a win
        comparison(0.8, 1.2),  # a win told as a loss
        comparison(None, 2.0),
    ]
    (group,) = summarise(members)
    assert (group.n, group.predicted, group.refused) == (4, 3, 1)
    assert group.median_error == pytest.approx(0.2)
    assert group.worst_error == pytest.approx(1 / 3)
    assert group.coverage_90 == pytest.approx(1 / 3)
    assert group.sign_accuracy == pytest.approx(0.5)


def test_a_group_of_refusals_has_no_errors() -> None:
    (group,) = summarise([comparison(None, 1.0)])
    assert (group.median_error, group.coverage_90, group.sign_accuracy) == (None, None, None)
