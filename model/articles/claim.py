"""A published claim beside what the model says: figures of both, a verdict, and the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import final

from model.prediction.prediction import Prediction


class Article(StrEnum):
    """Where a claim was published."""

    FIRST = "the first article"
    SECOND = "the second article (14 June 2026)"


class Verdict(StrEnum):
    """How a published claim and the model stand to each other.

    * AGREES: what was published lies in the model's 90 % interval, or on its side of a break-even.
    * CONTRADICTS: it lies outside, or on the other side.
    * DEPENDS: some of the settings that the claim leaves open are inside, others outside.
    * INCONSISTENT: no setting of the model gives all the published numbers at once.
    * CANNOT_TELL: the model has no answer for the setting.
    """

    AGREES = "agrees"
    CONTRADICTS = "contradicts"
    DEPENDS = "depends on the setting"
    INCONSISTENT = "inconsistent"
    CANNOT_TELL = "cannot tell"


class Word(StrEnum):
    """What stands where a number would, or qualifies a case."""

    NO_ACCEPTANCE = "none"
    DOES_NOT_FIT = "does not fit"
    NOT_MEASURED = "not measured"
    FITS = "fits"
    FALLING = "falling"
    RISING = "rising"
    IMPOSSIBLE = "impossible"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a claim was measured with; `assumed` says what the article leaves open."""

    target: str
    draft: str | None = None
    format: str
    machine: str
    runtime: str
    context: float
    assumed: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A published number, and where it stands if not in the article itself."""

    name: str
    value: float
    source: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of the model: `name` of `case`, with its 90 % interval where it has one.

    `value` is None where `word` stands in its place. An interval is None for what is arithmetic
    on published numbers, or a break-even at the fitted constants.
    """

    case: str
    name: str
    value: float | None = None
    interval_90: tuple[float, float] | None = None
    word: Word | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Figures that are read side by side: a row for each case, a column for each name."""

    title: str
    figures: tuple[Figure, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A claim that the machine at hand says nothing of, and why."""

    id: str
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim, re-examined; every number in `explanation` is computed."""

    id: str
    title: str
    article: Article
    setting: Setting
    published: tuple[Published, ...]
    predicted: tuple[Panel, ...]
    verdict: Verdict
    explanation: tuple[str, ...]


def speed(case: str, name: str, prediction: Prediction) -> Figure:
    """The tokens per second of a prediction, or that it does not fit."""
    fits = prediction.memory.fits
    return Figure(
        case=case,
        name=name,
        value=prediction.tokens_per_s,
        interval_90=prediction.interval_90,
        word=None if fits else Word.DOES_NOT_FIT,
    )


def gain(case: str, name: str, prediction: Prediction) -> Figure:
    """The speedup of a prediction, or that it does not fit."""
    fits = prediction.memory.fits
    return Figure(
        case=case,
        name=name,
        value=prediction.speedup,
        interval_90=prediction.speedup_interval_90,
        word=None if fits else Word.DOES_NOT_FIT,
    )


def covers(interval: tuple[float, float] | None, value: float) -> bool:
    """Whether a value lies in an interval, if there is one."""
    return interval is not None and interval[0] <= value <= interval[1]
