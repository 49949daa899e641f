"""Why a published run is not predicted: refusing is right where a number would be a guess."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import final


class Reason(StrEnum):
    """Kinds of refusal, as they are counted and explained."""

    LOW_TRUST = "low trust"
    UNUSUAL = "unusual conditions"
    NO_MEASUREMENT = "no measurement"
    UNKNOWN_TARGET = "unknown target"
    UNKNOWN_FORMAT = "unknown format"
    UNKNOWN_CHIP = "unknown chip"
    UNKNOWN_RUNTIME = "unknown runtime"
    NO_PROFILE = "no profile"
    UNKNOWN_DRAFT = "unknown draft"
    NO_DRAFT_LENGTH = "no draft length"
    TREE_DRAFT = "tree of drafts"
    NO_PROGRESS = "no progress"
    UNLABELLED_ACCEPTANCE = "unlabelled acceptance"
    IMPOSSIBLE_PROGRESS = "impossible progress"
    NOT_PRICED = "not priced"
    DOES_NOT_FIT = "does not fit"


EXPLANATIONS = {
    Reason.LOW_TRUST: "the source is suspect, contaminated or contradicts itself",
    Reason.UNUSUAL: "a hot or throttled machine, or another way through the runtime than the usual",
    Reason.NO_MEASUREMENT: "no rate for a plain run, no speedup for a strategy",
    Reason.UNKNOWN_TARGET: "the model is not named, or its architecture is not shipped",
    Reason.UNKNOWN_FORMAT: "unnamed quantization, or a mixture whose size is not stated",
    Reason.UNKNOWN_CHIP: "the chip is not stated or its facts are not shipped",
    Reason.UNKNOWN_RUNTIME: "neither MLX nor llama.cpp, of no known release, or with own kernels",
    Reason.NO_PROFILE: "no profile of this chip under this runtime",
    Reason.UNKNOWN_DRAFT: "the draft is not named, or its shape is not shipped",
    Reason.NO_DRAFT_LENGTH: "the number of drafted tokens is not stated nor documented, or varies",
    Reason.TREE_DRAFT: "several drafts a round share one pass, and nobody says how many",
    Reason.NO_PROGRESS: "neither tokens per pass nor acceptance is stated",
    Reason.UNLABELLED_ACCEPTANCE: "nobody says what the acceptance counts",
    Reason.IMPOSSIBLE_PROGRESS: "no acceptance gives these tokens per pass at this draft length",
    Reason.NOT_PRICED: "the model refuses the question, such as a format never measured",
    Reason.DOES_NOT_FIT: "weights and caches do not fit the machine's memory",
}
"""What each reason means, in half a line."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A reason, and what it is about in this run."""

    reason: Reason
    text: str

    def __str__(self) -> str:
        """Reason and text in one line."""
        return f"{self.reason}: {self.text}"
