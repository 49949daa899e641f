"""Published runs beside predictions: what is asked, what is scored, and why a run is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calibrate.comparison import SPEEDUP, THROUGHPUT
from calibrate.published.profiles import RunMachine
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.validation.question import Question, measured_of, question_of
from calibrate.validation.score import score
from model.prediction.prediction import predict
from model.strategies.block_diffusion import BlockDiffusion
from model.strategies.block_drafter import BlockDrafter
from model.strategies.draft_head import TrainedHead
from model.strategies.plain import Plain
from model.strategies.prompt_lookup import PromptLookup
from model.strategies.speculative import Speculative
from tests.calibrate.published.published_run import PLAIN, SPECULATIVE, published
from tests.calibrate.validation.planted import M3, on_m3, score_with


def asked(**changed: str) -> Question:
    question = question_of(published(SPECULATIVE | changed))
    assert isinstance(question, Question), str(question)
    return question


def test_a_plain_run_is_scored_by_its_rate() -> None:
    found = score(published(PLAIN | {"context_tokens": "1000"}), on_m3)
    question = question_of(published(PLAIN | {"context_tokens": "1000"}))
    assert isinstance(question, Question)
    same = predict(Plain(), question.target, M3.profile, context=1000.0)
    assert found.refusal is None
    assert found.comparison.quantity == THROUGHPUT
    assert found.comparison.predicted == same.tokens_per_s
    assert found.comparison.interval_90 == same.interval_90
    assert found.comparison.measured == 18.0


def test_a_batch_is_scored_by_the_rate_of_all() -> None:
    one, four = (
        score(published(PLAIN, strategy="batch", batch=batch), on_m3).comparison.predicted
        for batch in ("1", "4")
    )
    assert one is not None
    assert four is not None
    assert 1.5 * one < four < 4.0 * one


def test_a_strategy_is_scored_by_its_speedup() -> None:
    run = published(SPECULATIVE)
    found = score(run, on_m3)
    question = asked()
    same = predict(question.strategy, question.target, M3.profile, context=256.0)
    assert found.comparison.quantity == SPEEDUP
    assert found.comparison.predicted == same.speedup
    assert question.strategy.tokens_per_pass == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("changed", "quantity", "value"),
    [
        ({"speedup": "1.3", "decode_tok_s": "30", "baseline_tok_s": "20"}, SPEEDUP, 1.3),
        ({"speedup": "", "decode_tok_s": "30", "baseline_tok_s": "20"}, SPEEDUP, 1.5),
        ({"speedup": "", "decode_tok_s": "30", "baseline_tok_s": ""}, THROUGHPUT, 30.0),
        ({"speedup": "", "decode_tok_s": "", "baseline_tok_s": "20"}, SPEEDUP, None),
    ],
)
def test_what_is_scored(changed: dict[str, str], quantity: str, value: float | None) -> None:
    measured = measured_of(published(SPECULATIVE | changed))
    assert (measured.quantity, measured.value) == (quantity, value)


def test_a_batch_without_a_rate_is_scored_by_its_gain_over_one_sequence() -> None:
    cells = {"strategy": "batch", "batch": "4", "decode_tok_s": "", "speedup": "3.1"}
    found = score(published(PLAIN | cells), on_m3).comparison
    one, four = (
        score(published(PLAIN, strategy="batch", batch=batch), on_m3).comparison.predicted
        for batch in ("1", "4")
    )
    assert (found.quantity, found.measured) == (SPEEDUP, 3.1)
    assert found.predicted == pytest.approx((four or 0.0) / (one or 1.0), rel=1e-9)


def test_one_sequence_is_served_by_itself_anywhere() -> None:
    run = published(PLAIN, notes="rows run as serial M=1 forwards inside a batched step")
    assert score(run, on_m3).refusal is None


def test_block_diffusion_that_commits_its_blocks_is_a_pass_of_one_block() -> None:
    cells = {"strategy": "diffusion", "k": "32", "tokens_per_pass": "4", "target_model": "llada-8b"}
    strategy = asked(**cells, quote_or_locator="7 denoise steps + 1 commit").strategy
    assert isinstance(strategy, BlockDiffusion)
    assert (strategy.rows, strategy.tokens_per_pass) == (32, 4.0)


def test_a_run_that_does_not_say_k_has_what_its_engine_drafts() -> None:
    strategy = asked(k="").strategy
    assert isinstance(strategy, Speculative)
    assert strategy.draft_length == 3


def test_the_strategy_is_the_one_that_ran() -> None:
    assert isinstance(asked().strategy, Speculative)
    mtp = asked(strategy="mtp", target_model="Qwen3.6-27B", draft_model="built-in MTP head")
    assert isinstance(mtp.strategy, TrainedHead)
    block = asked(target_model="Qwen3-8B", draft_model="DFlash head", k="2")
    assert isinstance(block.strategy, BlockDrafter)
    lookup = asked(strategy="ngram", draft_model="suffix/n-gram")
    assert isinstance(lookup.strategy, PromptLookup)
    batch = asked(strategy="plain", batch="8")
    assert batch.strategy == Plain(sequences=8)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"trust": "low"}, Reason.LOW_TRUST),
        ({"notes": "hot-2k: after ten minutes"}, Reason.UNUSUAL),
        ({"notes": "bf16 on an FP32 path"}, Reason.UNUSUAL),
        ({"notes": "rows run as serial M=1 forwards", "batch": "2"}, Reason.UNUSUAL),
        ({"speedup": "", "decode_tok_s": ""}, Reason.NO_MEASUREMENT),
        ({"target_model": "nobody-7b"}, Reason.UNKNOWN_TARGET),
        ({"quant": "some mix"}, Reason.UNKNOWN_FORMAT),
        ({"draft_model": "nobody-1b"}, Reason.UNKNOWN_DRAFT),
        ({"tokens_per_pass": "9"}, Reason.IMPOSSIBLE_PROGRESS),
        ({"tokens_per_pass": "", "acceptance": "0.7"}, Reason.UNLABELLED_ACCEPTANCE),
        ({"strategy": "diffusion"}, Reason.NOT_PRICED),  # with a cache, or without?
        ({"strategy": "diffusion", "k": ""}, Reason.NO_DRAFT_LENGTH),
        ({"strategy": "diffusion", "tokens_per_pass": ""}, Reason.NO_PROGRESS),
        ({"strategy": "selfspec"}, Reason.NOT_PRICED),
        ({"draft_model": "qwen2.5-0.5b"}, Reason.NOT_PRICED),  # it speaks other tokens
        ({"k": "65"}, Reason.NOT_PRICED),
        ({"strategy": "batch", "batch": "4096"}, Reason.NOT_PRICED),
        ({"target_model": "Llama-3.1-405B"}, Reason.DOES_NOT_FIT),
        ({"strategy": "plain", "target_model": "Llama-3.1-405B"}, Reason.DOES_NOT_FIT),
    ],
)
def test_what_would_be_a_guess_is_refused(changed: dict[str, str], reason: Reason) -> None:
    found = score(published(SPECULATIVE | changed), on_m3)
    assert found.refusal is not None
    assert found.refusal.reason is reason
    assert found.comparison.predicted is None
    assert found.comparison.error is None
    assert found.comparison.refused is not None
    assert found.comparison.refused.startswith(f"{reason}: ")


def test_a_run_without_a_machine_is_refused() -> None:
    def nowhere(run: PublishedRun) -> RunMachine | Refusal:
        return Refusal(reason=Reason.NO_PROFILE, text=run.chip)

    found = score(published(), nowhere)
    assert found.refusal == Refusal(reason=Reason.NO_PROFILE, text="M3")
    assert "tokens_per_s, no machine" in found.comparison.groups


def test_nothing_of_the_times_of_a_run_is_used() -> None:
    slow, fast = (
        score(published(SPECULATIVE | {"speedup": speedup, "decode_tok_s": rate}), on_m3)
        for speedup, rate in (("0.5", "3"), ("4.0", "90"))
    )
    assert slow.comparison.predicted == fast.comparison.predicted


def test_a_run_that_the_fit_has_seen_is_told_apart() -> None:
    seen = replace(M3, profile=replace(M3.profile, samples=({"id": "X1"}, {"settings": "a probe"})))

    def machine_for(run: PublishedRun) -> RunMachine | Refusal:
        del run
        return seen

    for run_id, group in (("X1", "in the fit"), ("X2", "not in the fit")):
        found = score(published(PLAIN, id=run_id), machine_for)
        assert f"tokens_per_s, plain, {group}" in found.comparison.groups


def test_a_run_is_summed_up_by_what_it_ran_on() -> None:
    assert set(score_with(published(), 20.0).comparison.groups) == {
        "all",
        "tokens_per_s",
        "tokens_per_s, calibrated chip",
        "tokens_per_s, plain",
        "tokens_per_s, plain, calibrated chip",
        "tokens_per_s, plain, not in the fit",
        "tokens_per_s, chip M3 10-core",
        "tokens_per_s, runtime mlx-0.32",
        "tokens_per_s, model llama-3.1-8b",
    }
