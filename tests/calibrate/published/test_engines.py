"""What engines do with drafts, and what a run's notes say of its context and checkpoint."""

from __future__ import annotations

import pytest

from calibrate.published.conditions import UNSTATED_CONTEXT_TOKENS, context_of
from calibrate.published.engines import Engine, engine_of
from calibrate.published.evidence import engine_facts, shipped_runs
from calibrate.published.names import draft_of, target_of
from calibrate.published.refusal import Reason, Refusal
from calibrate.validation.question import question_of
from model.strategies.block_drafter import BlockDrafter
from tests.calibrate.published.published_run import published


def test_an_engine_is_known_by_its_first_word() -> None:
    assert engine_of(published(runtime="mlx-dspark 0.10.0")).heads_stored_as == "4bit"
    assert engine_of(published(runtime="Rapid-MLX")).adaptive_depth
    assert engine_of(published(runtime="mlx-lm")) == Engine()


def test_every_engine_has_a_source_and_a_run() -> None:
    names = {run.runtime.lower().partition(" ")[0] for run in shipped_runs()}
    for each in engine_facts():
        assert each["engine"] in names
        assert each["source"]


def shipped(run_id: str) -> BlockDrafter:
    (run,) = (each for each in shipped_runs() if each.id == run_id)
    question = question_of(run)
    assert not isinstance(question, Refusal), str(question)
    assert isinstance(question.strategy, BlockDrafter)
    return question.strategy


def test_an_engine_quantizes_heads_and_fills_their_blocks() -> None:
    """mlx-dspark stores heads in 4 bits; of a block of 16 or 7 rows it verifies the first two."""
    dflash, dspark = shipped("R1025"), shipped("R1022")
    assert dflash.head.weight_format.name == dspark.head.weight_format.name == "4bit"
    assert (dflash.block_rows, dflash.head_rows, dflash.draft_length) == (16, 15, 2)
    assert (dspark.block_rows, dspark.head_rows, dspark.draft_length) == (7, 2, 2)
    # dflash-mlx leaves them in 16 bits.
    assert shipped("R0900").head.weight_format.name == "bf16"


def test_a_head_without_an_engine_that_quantizes_keeps_its_format() -> None:
    (run,) = (each for each in shipped_runs() if each.id == "R0900")
    target = target_of(run)
    assert not isinstance(target, Refusal)
    draft = draft_of(run, target)
    assert not isinstance(draft, Refusal)
    assert draft.checkpoint.weight_format.name == "bf16"


def test_a_depth_that_the_engine_chooses_is_no_draft_length() -> None:
    """Issue 2175: 1,304 drafts in some 2,100 tokens of which 1,111 were accepted are not 3 each."""
    (run,) = (each for each in shipped_runs() if each.id == "R2218")
    question = question_of(run)
    assert isinstance(question, Refusal)
    assert question.reason is Reason.NO_DRAFT_LENGTH


@pytest.mark.parametrize(
    ("stated", "notes", "tokens"),
    [
        ("102", "context: 102 prompt + 8192 generated", 102 + 4096),
        ("66", "tok/s is end-to-end; context: 66 prompt + 200 generated", 166),
        ("512", "nothing of it", 512),
        ("0", "context: 0 (tg128)", 1),
        ("", "context: 102 prompt + 8192 generated", UNSTATED_CONTEXT_TOKENS),
    ],
)
def test_a_context_is_the_prompt_and_half_of_the_answer(
    stated: str, notes: str, tokens: float
) -> None:
    assert context_of(published(context_tokens=stated, notes=notes)) == tokens


@pytest.mark.parametrize(("quant", "gigabytes"), [("4bit", 6.70), ("4bit, MLP 8bit", 10.93)])
def test_the_mlps_may_have_more_bits(quant: str, gigabytes: float) -> None:
    """lablup/mlxcel: 6.70 GB of language model in 4 bits; 4.25 GB more with MLPs in 8 bits."""
    target = target_of(published(target_model="gemma-4-12b-it", quant=quant))
    assert not isinstance(target, Refusal)
    assert target.total_bytes / 1e9 == pytest.approx(gigabytes, rel=0.01)
