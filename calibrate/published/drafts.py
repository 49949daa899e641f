"""What drafted in a published run: a model of its own, or a head of the target.

The shipped table maps drafts by hand, a target at a time. A draft it does not have is looked for
among the shipped networks and heads by its spelling, and a head that is named by its kind alone
("DFlash", "built-in MTP head") is the target's own of that kind where one is shipped under that
very name. Two makers' heads of one kind may differ: one that names its maker is found by hand or
not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import final

from calibrate.published.engines import engine_of
from calibrate.published.evidence import name_map
from calibrate.published.formats import StoredAs, kernels_of, named_format
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.published.spelling import spelled
from calibrate.published.targets import checkpoint_of, shipped_by_key
from model import catalog
from model.errors import InputError
from model.network.checkpoint import Checkpoint
from model.network.draft_head import DraftHead
from model.network.head_target import load_head

KINDS = {
    "dflash": "dflash",
    "dflash2": "dflash2",
    "dspark": "dspark",
    "eagle3": "eagle3",
    "redrafter": "redrafter",
    "assistant": "assistant",
    "mtp": "mtp",
    "nextn": "mtp",
}
"""Heads that are named by their kind alone, by the end of the shipped name."""
BESIDE_A_KIND = ("built", "in", "single", "own", "block", "sidecar", "layer")
"""Words beside a kind that say nothing more."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What drafts: a model of its own, or a head that belongs to the target."""

    checkpoint: Checkpoint
    head: DraftHead | None


def draft_of(run: PublishedRun, target: Checkpoint) -> Draft | Refusal:
    """The draft model or head of a run, bound to its target.

    A format that is not stated is the one that the engine loads heads in; else the target's, but
    for block drafters and ReDrafter, which were published in 16 bits.
    """
    name = run.draft or "not named"
    entry = _tabled().get((run.draft, run.target))
    file = _file_of(run.draft, target) if entry is None else entry["file"]
    if not file:
        why = f" ({entry['remark']})" if entry is not None and entry["remark"] else ""
        return Refusal(reason=Reason.UNKNOWN_DRAFT, text=f"{name}{why}")
    written = spelled(run.draft).format if entry is None else entry["format"]
    if not written and file in catalog.head_names():
        written = engine_of(run).heads_stored_as or ""
    stated = named_format(kernels_of(run), written) if written else None
    if written and stated is None:
        return Refusal(reason=Reason.UNKNOWN_FORMAT, text=f"{written} of draft {name}")
    try:
        return _draft(file, stated, target)
    except InputError as error:
        return Refusal(reason=Reason.UNKNOWN_DRAFT, text=str(error))


def _file_of(name: str, target: Checkpoint) -> str | None:
    """The shipped network or head that a draft's name stands for beside this target."""
    words = spelled(name)
    found = shipped_by_key().get(words.key) or _heads_by_key().get(words.key)
    if found is not None or "/" in name:
        return found
    kind = KINDS.get("".join(word for word in words.words if word not in BESIDE_A_KIND))
    head = f"{target.architecture.name}-{kind}"
    return head if head in catalog.head_names() else None


@lru_cache(maxsize=512)
def _draft(file: str, stated: StoredAs | None, target: Checkpoint) -> Draft:
    if file in catalog.architecture_names():
        own = StoredAs(layers=target.weight_format)
        return Draft(checkpoint=checkpoint_of(file, 0, stated or own), head=None)
    checkpoint, head = load_head(file, None, target)
    if stated is None and not (head.kind.drafts_blocks or head.kind.value == "redrafter"):
        stated = StoredAs(layers=target.weight_format)
    if stated is not None:
        checkpoint = replace(checkpoint, weight_format=stated.layers)
    return Draft(checkpoint=checkpoint, head=head)


@cache
def _tabled() -> dict[tuple[str, str], Mapping[str, str]]:
    return {(each["name"], each["target"]): each for each in name_map() if each["role"] == "draft"}


@cache
def _heads_by_key() -> dict[str, str]:
    return {spelled(name).key: name for name in catalog.head_names()}
