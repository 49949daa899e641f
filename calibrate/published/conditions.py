"""Under which conditions a published run was measured, as far as its source says."""

from __future__ import annotations

from calibrate.published.run_row import PublishedRun

UNSTATED_CONTEXT_TOKENS = 256.0
"""Tokens in the cache where a run does not say: a short question and half of its answer."""
NOT_COLD = ("throttled", "hot-2k", "hot_2k", "heat-32k")
COLD_AGAIN = ("recovered",)
"""What notes and locators say of the state of a machine."""
OTHER_PATHS = ("fp32 path", "serial m=1 forwards", "narrow kernel")
"""What they say of another way through the runtime: 16-bit weights computed in 32 bits, a "batch"
whose sequences are decoded one after the other, a release's new kernel switched off."""


def context_of(run: PublishedRun) -> float:
    """Tokens in the cache, at least one."""
    stated = run.context_tokens
    return max(UNSTATED_CONTEXT_TOKENS if stated is None else stated, 1.0)


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
    return hot(run) or next((word for word in OTHER_PATHS if word in said), None)
