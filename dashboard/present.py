"""Answers as rows of charts and as sentences; every number in them is computed, none is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dashboard.answers import DRAFT_LENGTHS, Answer
from model.commands.prediction_text import label
from model.cost.forward import Bound
from model.prediction.prediction import Prediction
from model.strategies.base import BOUND_OF_PART
from model.units import MILLI

SPENT_ON = {
    Bound.MEMORY: "reading memory",
    Bound.COMPUTE: "arithmetic",
    Bound.DRAFT: "drafting",
    Bound.OVERHEAD: "overhead",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRow:
    """A strategy's speed and its 90 % interval, in tok/s, and the verdict on it."""

    label: str
    strategy: str
    tokens_per_s: float
    low_tokens_per_s: float
    high_tokens_per_s: float
    verdict: str

    @property
    def in_words(self) -> str:
        """The row for who cannot see the chart."""
        return (
            f"{self.label} {self.tokens_per_s:.1f} tok/s, {self.low_tokens_per_s:.1f} to "
            f"{self.high_tokens_per_s:.1f}, {self.verdict}"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """Milliseconds of one output token that a strategy spends on one part."""

    label: str
    part: str
    time_ms: float


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


def speed_rows(predictions: Sequence[Prediction]) -> list[SpeedRow]:
    """One row for each prediction that has a speed."""
    return [
        SpeedRow(
            label=label(each),
            strategy=each.strategy,
            tokens_per_s=each.tokens_per_s,
            low_tokens_per_s=each.interval_90[0],
            high_tokens_per_s=each.interval_90[1],
            verdict=each.verdict
            if each.strategy == "plain"
            else f"{each.speedup:.2f}×, {each.verdict}",
        )
        for each in predictions
        if each.tokens_per_s is not None and each.interval_90 is not None
    ]


def part_rows(predictions: Sequence[Prediction]) -> list[PartRow]:
    """One row for each part; those of one strategy sum to its time per output token."""
    return [
        PartRow(label=label(each), part=part, time_ms=part_s / each.tokens_per_pass / MILLI)
        for each in predictions
        for part, part_s in each.parts_s
    ]


def total_rows(predictions: Sequence[Prediction]) -> list[TotalRow]:
    """One row for each strategy."""
    return [
        TotalRow(
            label=label(each),
            time_ms=token_ms(each),
            total=f"{token_ms(each):.1f} ms, bound by {each.bound.value}",
        )
        for each in predictions
    ]


def token_ms(prediction: Prediction) -> float:
    """Milliseconds per output token: a round over the tokens it commits."""
    return prediction.round_s / prediction.tokens_per_pass / MILLI


def which_trick(answer: Answer) -> str:
    """Whether speculation pays, by how much, and what acceptance it takes."""
    best = answer.best
    if best is None or best.speedup is None or best.speedup_interval_90 is None:
        return f"**Speculation {answer.speculative[0].memory.reason}.**"
    says = {"faster": "Speculation pays", "slower": "Speculation does not pay"}
    low, high = best.speedup_interval_90
    return (
        f"**{says.get(best.verdict, 'Cannot tell')}** at acceptance {answer.acceptance:.2f}: "
        f"the best draft length, k = {best.settings['draft_length']}, gives "
        f"{best.tokens_per_s:.1f} tok/s, {best.speedup:.2f} times plain decoding "
        f"(90 % interval {low:.2f} to {high:.2f}). {what_it_takes(answer)}"
    )


def what_it_takes(answer: Answer) -> str:
    """The least acceptance that pays, or that none does."""
    paying = [
        (least, k)
        for least, k in zip(answer.break_even, DRAFT_LENGTHS, strict=True)
        if least is not None
    ]
    if not paying:
        return "No acceptance wins here: not even a draft that is always right."
    least, k = min(paying)
    return f"The least acceptance that pays is {least:.2f}, with k = {k}."


def bottleneck(answer: Answer) -> str:
    """What a token's time goes into, plainly and at the best draft length, and where that turns."""
    plain, best = answer.plain, answer.best
    sentences = [f"**A plain token takes {token_ms(plain):.1f} ms:** {shares(plain)}."]
    if best is None:
        return f"{sentences[0]} Speculation {answer.speculative[0].memory.reason}."
    sentences.append(
        f"At the best draft length, k = {best.settings['draft_length']}, "
        f"it takes {token_ms(best):.1f} ms: {shares(best)}."
    )
    bound = plain.bound
    for each in answer.fitting:
        if each.bound is not bound:
            bound = each.bound
            k = each.settings["draft_length"]
            sentences.append(f"From k = {k} on the largest share is {SPENT_ON[bound]}.")
    return " ".join(sentences)


def shares(prediction: Prediction) -> str:
    """What the time goes into, the largest share first; less than half a per cent is left out."""
    spent_s = dict.fromkeys(Bound, 0.0)
    for part, part_s in prediction.parts_s:
        spent_s[BOUND_OF_PART[part]] += part_s
    ranked = sorted(spent_s, key=lambda bound: spent_s[bound], reverse=True)
    return ", ".join(
        f"{SPENT_ON[bound]} {100 * spent_s[bound] / prediction.round_s:.0f} %"
        for bound in ranked
        if spent_s[bound] >= 0.005 * prediction.round_s
    )


def cautions(answer: Answer) -> list[str]:
    """How the machine was chosen, and where a prediction goes beyond what was measured."""
    warnings = dict.fromkeys(each for p in answer.fitting for each in p.warnings)
    return [line for line in (answer.note, *warnings) if line]


def literally(text: str) -> str:
    """A text as Markdown that shows it as it stands: a link may name a model in Markdown."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
