r"""The progress that a published run states, as acceptance of its draft.

Tokens per pass are taken where they stand; else an acceptance is converted by what its source
says it counts, and refused where that is not said. An engine may cut drafts short where it is
unsure: where a run states both its tokens per pass and accepted over drafted, the two say how many
it really drafted in a round,

.. math:: k = \frac{E - 1}{\text{accepted} / \text{drafted}}

and that mean, rounded, is the draft length that is priced, whether k is stated or not. Other runs
are taken to draft all k, but for draft models under llama.cpp: `--draft-p-min` (0.75, and 0.9 in
2024) ends a draft where it is unsure, so that k is only the most, and without tokens per pass
nothing tells the mean.

A list of numbers is an acceptance by position where its definition says so. A definition that the
tables do not have is read by its words: accepted over drafted, proposed or attempted tokens; the
share of the emitted tokens that were drafted. Words of a gate, a range or a moving average make it
none of them. A first token that the prompt's pass gave, counted with the first round, and rounding
may lift tokens per pass a little above what k allows; that is k + 1.

ReDrafter's k and tokens per pass count otherwise (:mod:`calibrate.published.beams`); of several
beams the acceptance is that of the best.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from calibrate.published.beams import beam_run
from calibrate.published.engines import engine_of
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.published.runtimes import is_llama_cpp
from model.errors import InputError
from model.progress.acceptance import Acceptance, from_survival, from_tokens_per_pass
from model.progress.published_rows import CONVERSIONS
from model.progress.vocabulary import MEASURES, Measure

COUNTED: Final[Mapping[str, Measure]] = {
    **MEASURES,
    "accepted/drafted as reported": Measure.ACCEPTED_FRACTION,
    "accepted/proposed": Measure.ACCEPTED_FRACTION,
    "n_accept/n_drafted": Measure.ACCEPTED_FRACTION,
    "n_accept/n_drafted as printed": Measure.ACCEPTED_FRACTION,
    "share of emitted tokens that came from drafts (dflash-mlx definition)": Measure.DRAFT_SHARE,
}
"""What definitions of the acceptance column count."""
_OF_DRAFTED = re.compile(
    r"\b(?:n_)?accept(?:ed)?\b(?: draft)?(?: tokens)? ?(?:/|over|per|of(?: the| all)?) ?"
    r"(?:n_)?(?:draft(?:ed|s)?|propos(?:ed|als)|attempt(?:ed|s))\b"
)
_OF_EMITTED = re.compile(
    r"\bshare of (?:the |all )?(?:emitted|generated|output) tokens that (?:were|came from) draft"
)
NEITHER = ("gate", "range", "ewma", "ambiguous", "confidence", "only", "ui", "per round")
"""Words of a definition that counts something else, or nobody knows what."""
ROUNDED_UP = 1.01
"""Tokens per pass may exceed k + 1 by this factor."""
CUT_SHORT = 0.95
"""Below this share of k the two numbers of a run differ by more than rounding."""
OF_CHAINS_ALONE = "only for beam width 1"
"""What a definition says that states no acceptance where several drafts shared a pass; such a run
has its progress from its tokens per pass, if its notes say how many drafts."""


def measure_of(definition: str) -> Measure:
    """What a definition of acceptance counts.

    >>> measure_of("accepted / drafted tokens").value, measure_of("acceptance").value
    ('accepted fraction', 'unlabelled')
    """
    if definition in COUNTED:
        return COUNTED[definition]
    said = definition.lower()
    if set(re.findall(r"[a-z]+", said)).intersection(NEITHER) or "per round" in said:
        return Measure.UNLABELLED
    if _OF_EMITTED.search(said):
        return Measure.DRAFT_SHARE
    return Measure.ACCEPTED_FRACTION if _OF_DRAFTED.search(said) else Measure.UNLABELLED


def acceptance_of(run: PublishedRun, default_length: int | None = None) -> Acceptance | Refusal:
    """The acceptance of independent positions with the run's tokens per pass at its k.

    `default_length` is what the run's engine drafts where the run does not say.
    """
    k = drafted_length(run, default_length)
    if k is None:
        return Refusal(reason=Reason.NO_DRAFT_LENGTH, text=run.draft or run.strategy)
    beams = beam_run(run)
    if run.strategy == "speculative" and is_llama_cpp(run.runtime) and not run.tokens_per_pass:
        text = f"{run.draft}: k is the most, llama.cpp ends drafts where it is unsure"
        return Refusal(reason=Reason.NO_DRAFT_LENGTH, text=text)
    if beams is None and OF_CHAINS_ALONE in run.acceptance_def and not run.acceptance:
        return Refusal(reason=Reason.TREE_DRAFT, text=run.draft)
    try:
        if beams is not None and beams.tokens_per_pass is not None:
            return independent(from_tokens_per_pass(beams.tokens_per_pass, k))
        if run.tokens_per_pass is not None:
            tokens = run.tokens_per_pass
            most = k + 1.0
            tokens = most if most < tokens <= ROUNDED_UP * most else tokens
            return independent(from_tokens_per_pass(tokens, k))
        if engine_of(run).adaptive_depth:
            text = f"up to {k}, chosen by {run.runtime} round by round"
            return Refusal(reason=Reason.NO_DRAFT_LENGTH, text=text)
        return _converted(run, k)
    except InputError as error:
        return Refusal(reason=Reason.IMPOSSIBLE_PROGRESS, text=str(error))


def drafted_length(run: PublishedRun, default_length: int | None = None) -> int | None:
    """Tokens that a round drafted on average, rounded; None where nothing says."""
    beams = beam_run(run)
    if beams is not None:
        return beams.draft_length
    k = default_length if run.draft_length is None else run.draft_length
    mean = _mean_drafted(run)
    if mean is None or (k is not None and mean > CUT_SHORT * k):
        return k or None
    return max(1, round(mean))


def _mean_drafted(run: PublishedRun) -> float | None:
    """Drafted tokens a round, from tokens per pass and accepted over drafted; None without both."""
    fraction = measure_of(run.acceptance_def) is Measure.ACCEPTED_FRACTION
    if not fraction or run.tokens_per_pass is None:
        return None
    try:
        accepted = float(run.acceptance)
    except ValueError:
        return None
    return (run.tokens_per_pass - 1.0) / accepted if accepted > 0.0 else None


def _converted(run: PublishedRun, k: int) -> Acceptance | Refusal:
    if not run.acceptance:
        return Refusal(reason=Reason.NO_PROGRESS, text=run.draft or run.strategy)
    measure = measure_of(run.acceptance_def)
    if measure is Measure.SURVIVAL:
        return _by_position(run, k)
    if measure not in CONVERSIONS:
        text = f"{run.acceptance} ({run.acceptance_def or 'not said of what'})"
        return Refusal(reason=Reason.UNLABELLED_ACCEPTANCE, text=text)
    try:
        value = float(run.acceptance)
    except ValueError:
        text = f"{run.acceptance} is not one number"
        return Refusal(reason=Reason.UNLABELLED_ACCEPTANCE, text=text)
    return independent(CONVERSIONS[measure](value, k))


def _by_position(run: PublishedRun, k: int) -> Acceptance | Refusal:
    """Shares of rounds that accepted each position, of all k positions."""
    try:
        shares = [float(share) for share in re.split(r"[/,; ]+", run.acceptance)]
    except ValueError:
        shares = []
    if len(shares) == k:
        return from_survival(shares)
    text = f"{run.acceptance} are not {k} shares"
    return Refusal(reason=Reason.UNLABELLED_ACCEPTANCE, text=text)


def independent(rate: float) -> Acceptance:
    """One rate for every position; a rounding error beyond 1 is 1."""
    return Acceptance(by_position=(min(rate, 1.0),))
