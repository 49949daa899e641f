"""ReDrafter's rows: a beam counts the target's token, rounds are one more than steps."""

from __future__ import annotations

import pytest

from calibrate.published.beams import BeamRun, WholeAnswer, beam_run, whole_answer
from calibrate.published.evidence import shipped_runs
from calibrate.published.run_row import PublishedRun
from calibrate.validation.progress import acceptance_of, drafted_length
from calibrate.validation.question import Question, question_of
from model.progress.acceptance import Acceptance
from model.strategies.draft_head import TrainedHead
from tests.calibrate.published.published_run import SPECULATIVE, published

NOTES = (
    "beam width 3 (k = beam length); tok/s is end-to-end incl. prefill of 66 tokens, baseline "
    "computed the same way (best run); tokens_per_pass = 200/steps; context: 66 prompt + 200 "
    "generated"
)


def run(**changed: str) -> PublishedRun:
    return published(SPECULATIVE | {"k": "3", "tokens_per_pass": "2.0", "notes": NOTES} | changed)


def test_a_beam_holds_one_token_of_the_target() -> None:
    """100 steps were counted of 101 rounds, which made 199 tokens."""
    assert beam_run(run()) == BeamRun(beams=3, draft_length=2, tokens_per_pass=199 / 101)
    assert drafted_length(run()) == 2


def test_tokens_per_pass_are_those_of_the_rounds() -> None:
    found = acceptance_of(run())
    assert isinstance(found, Acceptance)
    assert found.tokens_per_pass(2) == pytest.approx(199 / 101)


def test_no_round_commits_less_than_a_token() -> None:
    """198 steps of two tokens: a chain that was never right but for the last round's end."""
    found = beam_run(run(k="2", tokens_per_pass="1.0101"))
    assert found is not None
    assert found.tokens_per_pass == pytest.approx(1.0, abs=1e-4)
    assert (found.tokens_per_pass or 0.0) >= 1.0


def test_what_a_run_does_not_say_is_not_made_up() -> None:
    assert beam_run(run(notes="")) is None
    assert whole_answer(run(notes="beam width 3 (k = beam length)")) is None
    alone = beam_run(run(notes="beam width 3 (k = beam length)"))
    assert alone == BeamRun(beams=3, draft_length=2, tokens_per_pass=2.0)
    too_short = beam_run(run(k="1"))
    assert too_short is not None
    assert too_short.draft_length is None


def test_times_hold_the_prompt() -> None:
    assert whole_answer(run()) == WholeAnswer(prompt_tokens=66, answer_tokens=200)


def test_no_beam_of_the_shipped_rows_commits_more_than_it_holds() -> None:
    """With k = beam length + 1 tokens would be possible; of 128 rows none has them."""
    found = [each for each in map(beam_run, shipped_runs()) if each is not None]
    assert len(found) == 128
    assert sum(each.beams == 1 for each in found) == 32
    for each in found:
        assert 1.0 <= (each.tokens_per_pass or 0.0) <= (each.draft_length or 0) + 1.0


def test_every_shipped_row_asks_for_its_own_tree() -> None:
    runs = [each for each in shipped_runs() if beam_run(each) is not None]
    for each in runs:
        question, beams = question_of(each), beam_run(each)
        assert beams is not None
        assert isinstance(question, Question)
        assert isinstance(question.strategy, TrainedHead)
        assert question.strategy.tree.beams == beams.beams
        assert question.strategy.verified_rows == beams.beams * (each.draft_length or 0)
