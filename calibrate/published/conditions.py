"""Under which conditions a published run was measured, as far as its source says."""

from __future__ import annotations

import re

from calibrate.published.run_row import PublishedRun

UNSTATED_CONTEXT_TOKENS = 256.0
"""Tokens in the cache where a run does not say: a short question and half of its answer."""
NOT_COLD = ("throttled", "hot-2k", "hot_2k", "heat-32k")
COLD_AGAIN = ("recovered",)
"""What notes and locators say of the state of a machine."""
OTHER_PATHS = ("fp32 path",)
ONE_BY_ONE = "serial m=1 forwards"
"""What they say of another way through the runtime: 16-bit weights computed in 32 bits, and a
"batch" whose sequences are decoded one after the other, which for one sequence is the usual way."""

_GENERATED = re.compile(r"context: [\d,]+ prompt \+ (\d+)")


def context_of(run: PublishedRun) -> float:
    """Tokens in the cache on average, at least one: the prompt and half of what is generated.

    Where notes say how much a run generated its stated context is the prompt alone.
    """
    stated = run.context_tokens
    if stated is None:
        return UNSTATED_CONTEXT_TOKENS
    generated = _GENERATED.search(run.notes)
    return max(stated + 0.5 * float(generated[1] if generated else 0), 1.0)


def hot(run: PublishedRun) -> str | None:
    """What says that a machine was hot; None where nothing does, or it had cooled again."""
    said = said_of(run)
    if any(word in said for word in COLD_AGAIN):
        return None
    return next((word for word in NOT_COLD if word in said), None)


def said_of(run: PublishedRun) -> str:
    """What notes and locator say, in small letters."""
    return f"{run.notes} {run.locator}".lower()


def unusual(run: PublishedRun) -> str | None:
    """What sets a run apart from a cold machine on its usual kernels; None where nothing does."""
    said = said_of(run)
    if any(word in said for word in COLD_AGAIN):
        return None
    others = OTHER_PATHS if run.batch == 1 else (*OTHER_PATHS, ONE_BY_ONE)
    return hot(run) or next((word for word in others if word in said), None)
