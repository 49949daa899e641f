"""Answers as rows of charts: strategies by speed, and their time by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dashboard.rows.place import placed
from model.commands.answer import Answer
from model.commands.prediction_text import described, label
from model.prediction.need import Need
from model.prediction.prediction import Prediction
from model.units import MILLI

REJECTED = "rejected work"

MEANING = {
    "weights": "reading the target's weights from memory",
    "kv": "reading the cache of keys and values",
    "growth": "copying the cache when it grows",
    "arithmetic": "multiplying, beyond what hides behind the reading",
    "draft": "making guesses that were accepted",
    REJECTED: "making and checking guesses that were thrown away",
    "dispatch": "starting the kernels of every layer",
    "host": "the processor between two passes",
    "sync": "waiting for the result before the next pass can be built",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyRow:
    """A strategy's speed in tok/s with its 90 % interval and verdict.

    Without a speed, low and high are what it could reach between an acceptance of 0.1 and 1, or
    None where it does not fit at all.
    """

    label: str
    strategy: str
    tokens_per_s: float | None
    low_tokens_per_s: float | None
    high_tokens_per_s: float | None
    verdict: str

    @property
    def in_words(self) -> str:
        """The row for who cannot see the chart."""
        low, high = self.low_tokens_per_s, self.high_tokens_per_s
        if low is None or high is None:
            return f"{self.label} {self.verdict}"
        speed = "" if self.tokens_per_s is None else f" {self.tokens_per_s:.1f} tok/s,"
        return f"{self.label}{speed} {low:.1f} to {high:.1f} tok/s, {self.verdict}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """Milliseconds of one output token that a strategy spends on one part, and what that is."""

    label: str
    part: str
    time_ms: float
    meaning: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TotalRow:
    """Milliseconds of one output token, and the same in words with what it is bound by."""

    label: str
    time_ms: float
    total: str

    @property
    def in_words(self) -> str:
        """The row for who cannot see the chart."""
        return f"{self.label} {self.total}"


def strategy_rows(answer: Answer) -> tuple[StrategyRow, ...]:
    """One row for each strategy that the target can be run with, predicted ones first."""
    plain_per_s = answer.predictions[0].tokens_per_s or 0.0
    return (
        *(_predicted(each) for each in answer.predictions),
        *(_needed(each, plain_per_s) for each in answer.needs),
    )


def _predicted(prediction: Prediction) -> StrategyRow:
    low, high = prediction.interval_90 or (None, None)
    verdict = prediction.verdict
    if prediction.speedup is not None and prediction.strategy != "plain":
        verdict = f"{prediction.speedup:.2f}×, {verdict}"
    return StrategyRow(
        label=label(prediction),
        strategy=prediction.strategy,
        tokens_per_s=prediction.tokens_per_s,
        low_tokens_per_s=low,
        high_tokens_per_s=high,
        verdict=verdict,
    )


def _needed(need: Need, plain_per_s: float) -> StrategyRow:
    speedups = [point.speedup for point in need.curve]
    if not need.memory.fits:
        verdict = "does not fit"
    elif need.needed_acceptance is None:
        verdict = "no acceptance wins"
    else:
        verdict = f"wins from acceptance {need.needed_acceptance:.2f}"
    return StrategyRow(
        label=described(need.strategy, need.settings),
        strategy=need.strategy,
        tokens_per_s=None,
        low_tokens_per_s=min(speedups) * plain_per_s if need.memory.fits else None,
        high_tokens_per_s=max(speedups) * plain_per_s if need.memory.fits else None,
        verdict=verdict,
    )


def part_rows(predictions: Sequence[Prediction]) -> tuple[PartRow, ...]:
    """One row for each part; those of one strategy sum to its time per output token."""
    return tuple(
        PartRow(
            label=label(each),
            part=part,
            time_ms=part_s / each.tokens_per_pass / MILLI,
            meaning=MEANING[part],
        )
        for each in predictions
        for part, part_s in spent_s(each).items()
    )


def spent_s(prediction: Prediction) -> dict[str, float]:
    """Seconds of a round by part, with the work on rejected tokens taken out of the others.

    A draft of k tokens of which E - 1 are accepted wastes the share 1 - (E - 1) / k of its
    drafting, and the share (k + 1 - E) / (k + 1) of the verify pass's arithmetic; reading and
    starting kernels are paid once however many rows are right.
    """
    parts = dict(prediction.parts_s)
    length = prediction.settings.get("draft_length")
    if not isinstance(length, int) or "draft" not in parts:
        return parts
    accepted = prediction.tokens_per_pass - 1.0
    wasted = {
        "draft": parts["draft"] * (1.0 - accepted / length),
        "arithmetic": parts["arithmetic"] * (length - accepted) / (length + 1.0),
    }
    kept = {part: part_s - wasted.get(part, 0.0) for part, part_s in parts.items()}
    return {**kept, REJECTED: sum(wasted.values())}


def total_rows(predictions: Sequence[Prediction]) -> tuple[TotalRow, ...]:
    """One row for each strategy."""
    return tuple(
        TotalRow(
            label=label(each),
            time_ms=token_ms(each),
            total=f"{token_ms(each):.1f} ms, bound by {each.bound.value}",
        )
        for each in predictions
    )


def token_ms(prediction: Prediction) -> float:
    """Milliseconds per output token: a round over the tokens it commits."""
    return prediction.round_s / prediction.tokens_per_pass / MILLI


def fitting(answer: Answer) -> tuple[Prediction, ...]:
    """The predictions that have a speed: the others would not fit into memory."""
    return tuple(each for each in answer.predictions if each.memory.fits)


def place(answer: Answer) -> str:
    """What was predicted and where, and what the constants rest on."""
    profile = answer.choice.profile
    return placed(profile, answer.target, answer.context, draft=answer.draft)


def cautions(answer: Answer) -> tuple[str, ...]:
    """How the machine was chosen, where a prediction goes far, and which strategies cannot be."""
    warnings = dict.fromkeys(each for p in fitting(answer) for each in p.warnings)
    unfit = [f"{label(p)} {p.memory.reason}" for p in answer.predictions if not p.memory.fits]
    refused = [f"{each.strategy} is left out: {each.reason}" for each in answer.refused]
    notes = answer.choice.note.splitlines()
    return tuple(line for line in (*notes, *warnings, *unfit, *refused) if line)
