"""What the word acceptance means in a row, and the progress that it allows.

Published rows use one word for several quantities (`acceptance_def` says which). Two of them bound
the tokens per pass E from above by themselves:

- accepted over drafted, a: E = 1 + a d with d tokens drafted in a round on average, and d <= k, so
  E <= 1 + a k. A list by position p1, p2, ... gives E <= 1 + p1 + p2 + ..., whether each entry is
  conditional on the ones before it or not. A gate that withholds unsure drafts only lowers d.
- share of the output that was drafted, s: each pass adds one token of its own, so E = 1 / (1 - s).

Source: E[k] of Leviathan et al. 2023 (arXiv:2211.17192), with d <= k. The first bound does not hold
for trees or beams, which draft more tokens than the k of their depth; rows that say so are not
judged. Rows whose definition can be read both ways are not judged either.
"""

from __future__ import annotations

import re
from enum import Enum

from calibrate.audit.rounding import most
from calibrate.published.run_row import PublishedRun

DRAFTING = frozenset({"speculative", "mtp", "ngram", "selfspec", "layer-skip"})
"""Strategies that draft and check: their output is the target's, and a pass yields 1 or more."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_PER_DRAFT = re.compile(r"accept\w*\s*/\s*(?:\w*draft|attempt|propos)|draft acceptance|beam_length")
_SHARE = re.compile(r"share of emitted|share of (?:the )?output")
_TREE = re.compile(r"\btree\b")
_BEAMS = re.compile(r"beam width (?:[2-9]|\d\d)")


class Meaning(Enum):
    """What a row's acceptance counts."""

    PER_DRAFT = "accepted over drafted"
    SHARE = "share of the output that was drafted"
    OTHER = "another quantity"


def meaning(run: PublishedRun) -> Meaning:
    """Which quantity the row's acceptance is, by its own definition; silence is OTHER."""
    words = run.acceptance_def.lower()
    if "ambiguous" in words:
        return Meaning.OTHER
    if _SHARE.search(words):
        return Meaning.SHARE
    if _PER_DRAFT.search(words) or "confidence-gated" in words:
        return Meaning.PER_DRAFT
    return Meaning.OTHER


def stated_acceptance(run: PublishedRun) -> tuple[float, ...]:
    """The numbers of the cell: one, or one per position; empty if there are none."""
    return tuple(float(number) for number in _NUMBER.findall(run.acceptance))


def allowed_by_acceptance(run: PublishedRun) -> tuple[float, str] | None:
    """The most tokens per pass that the acceptance allows, and the sum that says so.

    None where the row has no acceptance, or one that bounds nothing; numbers above 1 are not
    probabilities, and a rule of their own names them.
    """
    stated = stated_acceptance(run)
    if not stated or max(stated) > 1.0:
        return None
    highest = tuple(min(1.0, most(number)) for number in stated)
    kind = meaning(run)
    if kind is Meaning.SHARE:
        share = max(highest)
        return None if share >= 1.0 else (1.0 / (1.0 - share), f"1 / (1 - {max(stated):.4g})")
    if kind is not Meaning.PER_DRAFT or drafts_several_paths(run):
        return None
    if len(stated) > 1:
        return 1.0 + sum(highest), f"1 + {' + '.join(f'{number:.4g}' for number in stated)}"
    if run.draft_length is None:
        return None
    allowed = 1.0 + max(highest) * run.draft_length
    return allowed, f"1 + {max(stated):.4g} x {run.draft_length}"


def drafts_several_paths(run: PublishedRun) -> bool:
    """Whether the row says that it drafts a tree or beams; a doubt in its notes is no statement."""
    described = " ".join((run.runtime, run.draft, run.task, run.acceptance_def)).lower()
    return bool(_TREE.search(described) or _BEAMS.search(f"{described} {run.notes}".lower()))
