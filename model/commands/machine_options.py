"""The machine a question is about: which one, under which MLX, with how much memory."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import final

from model.commands import options as shared
from model.errors import InputError
from model.machine.kernels.runtime_change import as_runtime
from model.machine.profile import Profile
from model.machine.profile_store import choose_profile
from model.machine.working_set import working_set_share
from model.units import GIB


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenMachine:
    """The profile that was asked for, the one it was made from, and what should be said of it."""

    profile: Profile
    own: Profile
    note: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--machine`, `--runtime`, `--memory` and `--json`."""
    parser.add_argument(
        "--runtime",
        metavar="mlx-X.Y",
        help="predict for another MLX release on the same machine, e.g. mlx-0.31",
    )
    parser.add_argument(
        "--memory", metavar="GB", help="predict for the same chip with another memory size"
    )
    shared.add_machine(parser)


def chosen_machine(options: argparse.Namespace) -> ChosenMachine:
    """The machine that the options describe.

    Raises:
        InputError: no such machine, a runtime that no table covers, or an impossible memory.
    """
    choice = choose_profile(options.machine)
    profile, notes = choice.profile, [choice.note] if choice.note else []
    if options.runtime is not None:
        profile = as_runtime(profile, options.runtime)
    if options.memory is not None:
        profile, note = with_memory(profile, options.memory)
        notes += [note] if note else []
    return ChosenMachine(profile=profile, own=choice.profile, note="\n".join(notes))


def with_memory(profile: Profile, text: str) -> tuple[Profile, str]:
    """The same chip with so many GB, and a note where that size is not known to have a limit.

    Raises:
        InputError: not a size, or a machine whose memory does not follow Apple's sizes.
    """
    if profile.header.device != "metal":
        wrong = f"does not apply to {profile.header.name}"
        raise InputError(f"--memory {text}", wrong, "choose an Apple machine")
    gib = shared.whole_number("--memory", text, least=4, most=4096)
    memory_bytes = round(gib * GIB)
    share = working_set_share(memory_bytes)
    header = replace(
        profile.header,
        memory_bytes=memory_bytes,
        recommended_working_set_bytes=round(share.share * memory_bytes),
    )
    return replace(profile, header=header), share.note
