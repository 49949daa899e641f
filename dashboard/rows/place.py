"""What an answer is about, in words: the networks, the machine, the context, and its constants."""

from __future__ import annotations

from model.machine.profile import Profile
from model.network.checkpoint import Checkpoint


def placed(
    profile: Profile, target: Checkpoint, context: float, *, draft: Checkpoint | None = None
) -> str:
    """What was asked and where, and what the constants rest on."""
    drafted = "" if draft is None else f", drafted by {draft.label}"
    machine = profile.machine
    return (
        f"{target.label}{drafted}, on {machine.chip} ({machine.runtime}), "
        f"{context:,.0f} tokens of context; constants: {profile.origin.label}"
    )
