r"""The progress that a published run states, as acceptance of its draft.

Tokens per pass are taken where they stand; else an acceptance is converted by what its source
says it counts, and refused where that is not said. An engine may cut drafts short where it is
unsure: where a run states both its tokens per pass and accepted over drafted, the two say how many
it really drafted in a round,

.. math:: k = \frac{E - 1}{\text{accepted} / \text{drafted}}

and that mean, rounded, is the draft length that is priced. Other runs are taken to draft all k.
ReDrafter's k and tokens per pass count otherwise (:mod:`calibrate.published.beams`); of several
beams the acceptance is that of the best.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from calibrate.published.beams import beam_run
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from model.errors import InputError
from model.progress.acceptance import Acceptance, from_tokens_per_pass
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
"""What definitions of the acceptance column count; a definition that is not here is unlabelled."""
CUT_SHORT = 0.95
"""Below this share of k the two numbers of a run differ by more than rounding."""
OF_CHAINS_ALONE = "only for beam width 1"
"""What a definition says that states no acceptance where several drafts shared a pass; such a run
has its progress from its tokens per pass, if its notes say how many drafts."""


def acceptance_of(run: PublishedRun) -> Acceptance | Refusal:
    """The acceptance of independent positions with the run's tokens per pass at its k."""
    k = drafted_length(run)
    if k is None:
        return Refusal(reason=Reason.NO_DRAFT_LENGTH, text=run.draft or run.strategy)
    beams = beam_run(run)
    if beams is None and OF_CHAINS_ALONE in run.acceptance_def and not run.acceptance:
        return Refusal(reason=Reason.TREE_DRAFT, text=run.draft)
    try:
        if beams is not None and beams.tokens_per_pass is not None:
            return independent(from_tokens_per_pass(beams.tokens_per_pass, k))
        if run.tokens_per_pass is not None:
            return independent(from_tokens_per_pass(run.tokens_per_pass, k))
        return _converted(run, k)
    except InputError as error:
        return Refusal(reason=Reason.IMPOSSIBLE_PROGRESS, text=str(error))


def drafted_length(run: PublishedRun) -> int | None:
    """Tokens that a round drafted on average, rounded; None where the run does not say."""
    beams = beam_run(run)
    if beams is not None:
        return beams.draft_length
    k = run.draft_length
    if k is None or k < 1:
        return None
    measure = COUNTED.get(run.acceptance_def, Measure.UNLABELLED)
    if measure is not Measure.ACCEPTED_FRACTION or run.tokens_per_pass is None:
        return k
    try:
        fraction = float(run.acceptance)
    except ValueError:
        return k
    if fraction <= 0.0:
        return k
    drafted = (run.tokens_per_pass - 1.0) / fraction
    return k if drafted > CUT_SHORT * k else max(1, round(drafted))


def _converted(run: PublishedRun, k: int) -> Acceptance | Refusal:
    if not run.acceptance:
        return Refusal(reason=Reason.NO_PROGRESS, text=run.draft or run.strategy)
    measure = COUNTED.get(run.acceptance_def, Measure.UNLABELLED)
    if measure not in CONVERSIONS:
        text = f"{run.acceptance} ({run.acceptance_def or 'not said of what'})"
        return Refusal(reason=Reason.UNLABELLED_ACCEPTANCE, text=text)
    try:
        value = float(run.acceptance)
    except ValueError:
        text = f"{run.acceptance} is not one number"
        return Refusal(reason=Reason.UNLABELLED_ACCEPTANCE, text=text)
    return independent(CONVERSIONS[measure](value, k))


def independent(rate: float) -> Acceptance:
    """One rate for every position; a rounding error beyond 1 is 1."""
    return Acceptance(by_position=(min(rate, 1.0),))
