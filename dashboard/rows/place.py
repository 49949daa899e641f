"""What an answer is about, in words: the networks, the machine, the context, and its constants."""

from __future__ import annotations

from model.machine.constant import Origin
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
        f"{context:,.0f} tokens of context; {BASIS[profile.origin]}"
    )


BASIS = {
    Origin.MEASURED: "all constants timed on this machine",
    Origin.PUBLISHED: "constants fitted to what others timed on this chip",
    Origin.SPEC_SHEET: "some constants only from the maker's data sheet",
    Origin.PRIOR: "some constants only expected from other machines",
}
"""What the weakest constant of a machine comes from, for who does not know the origins' names."""
