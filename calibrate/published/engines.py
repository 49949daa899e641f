"""How the engine of a published run drafts, where that is not what the strategies assume.

Read from the engines' sources, by hand; an engine that is not in the table drafts as mlx-lm and
mlx-vlm do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import final

from calibrate.published.evidence import engine_facts
from calibrate.published.run_row import PublishedRun


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What an engine does with drafts.

    `heads_stored_as` is the format that it quantizes trained heads to as it loads them, None where
    it leaves them. With `fills_block` a block drafter fills the block of its training, however few
    of its tokens are verified. With `adaptive_depth` the stated draft length is the most of a
    round, and the engine chooses.
    """

    heads_stored_as: str | None = None
    fills_block: bool = False
    adaptive_depth: bool = False


def engine_of(run: PublishedRun) -> Engine:
    """The engine of a run; one that is not tabled has no peculiarities."""
    return _engines().get(run.runtime.lower().partition(" ")[0], Engine())


@cache
def _engines() -> dict[str, Engine]:
    return {
        each["engine"]: Engine(
            heads_stored_as=each["heads_stored_as"] or None,
            fills_block=each["fills_block"] == "yes",
            adaptive_depth=each["adaptive_depth"] == "yes",
        )
        for each in engine_facts()
    }
