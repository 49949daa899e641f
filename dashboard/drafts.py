"""Which models could draft for a target, for who has chosen none."""

from __future__ import annotations

from functools import lru_cache

from dashboard.selection import Selection
from model.catalog import architecture_names
from model.errors import InputError
from model.network.target import load_target
from model.strategies.speculative import check_vocabulary

AT_MOST_SHARE = 0.5
"""A draft with more of the target's weights than this has little to give."""
MOST_NAMED = 4


def check_draft(selection: Selection) -> None:
    """Refuse a question about a draft where none is chosen, and say which could be.

    Raises:
        InputError: there is none.
    """
    if selection.draft:
        return
    names = ", ".join(drafts_for(selection.target)[:MOST_NAMED])
    right = f"choose one under Draft: {names}" if names else "no shipped model speaks its tokens"
    raise InputError(f"{selection.target} without a draft", "has no break-even", right)


def likely_drafts(target: str) -> tuple[str, ...]:
    """The same, or none: of a target that would be fetched, or that others say is not known."""
    if target.startswith("hf:"):
        return ()
    try:
        return drafts_for(target)
    except InputError:
        return ()


@lru_cache(maxsize=64)
def drafts_for(target: str) -> tuple[str, ...]:
    """The shipped models that speak a target's tokens and are at most half as large.

    Raises:
        InputError: there is no such target.

    >>> drafts_for("llama-3.1-8b")
    ('llama-3.2-1b', 'llama-3.2-3b')
    """
    verifier = load_target(target, None)
    found: list[tuple[int, str]] = []
    for name in architecture_names():
        draft = load_target(name, None)
        if draft.total_bytes > AT_MOST_SHARE * verifier.total_bytes:
            continue
        if draft.architecture.model_type != verifier.architecture.model_type:
            continue
        try:
            check_vocabulary(verifier, draft)
        except InputError:
            continue
        found.append((draft.total_bytes, name))
    return tuple(name for _, name in sorted(found))
