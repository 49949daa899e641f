"""Arguments that several commands share, and the records they become."""

from __future__ import annotations

import argparse

from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.target import load_target
from model.progress.acceptance import (
    MAX_DRAFT_LENGTH,
    Acceptance,
    from_accepted_fraction,
    from_draft_share,
    from_tokens_per_pass,
)

DEFAULT_CONTEXT = 1024

PROGRESS = ("acceptance", "accepted_fraction", "draft_share", "tokens_per_pass")
"""The four names of an acceptance, as attributes of the options."""


def add_machine(parser: argparse.ArgumentParser) -> None:
    """`--machine` and `--json`."""
    parser.add_argument(
        "--machine",
        metavar="NAME|FILE",
        help="a name from `tokroof machines` or a profile file (default: last calibration)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_target(parser: argparse.ArgumentParser, *, context: int = DEFAULT_CONTEXT) -> None:
    """TARGET, its format, and the context."""
    parser.add_argument(
        "target", metavar="TARGET", help="a name from `tokroof models`, a folder, or a config.json"
    )
    parser.add_argument(
        "--format", metavar="F", help="weight format: 4bit, 8bit, bf16, ... (default: the config's)"
    )
    parser.add_argument(
        "--context",
        metavar="TOKENS",
        default=str(context),
        help=f"tokens in the cache (default: {context})",
    )


def add_pair(
    parser: argparse.ArgumentParser, *, draft_required: bool, context: int = DEFAULT_CONTEXT
) -> None:
    """TARGET, its format, the draft, and the context."""
    add_target(parser, context=context)
    parser.add_argument(
        "--draft", metavar="MODEL", required=draft_required, help="draft model, named like TARGET"
    )
    parser.add_argument("--draft-format", metavar="F", help="its weight format (default: --format)")


def add_progress(parser: argparse.ArgumentParser) -> None:
    """How many draft tokens survive, by any of its four names."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--acceptance", metavar="A[,A...]", help="probability per position, one or a list"
    )
    group.add_argument("--accepted-fraction", metavar="X", help="accepted / drafted")
    group.add_argument("--draft-share", metavar="X", help="accepted / output")
    group.add_argument("--tokens-per-pass", metavar="X", help="output tokens per target pass")


def load_pair(
    options: argparse.Namespace, machine: Machine
) -> tuple[Checkpoint, Checkpoint | None]:
    """The target and the draft, if any, as the machine holds them."""
    target = load_target(options.target, options.format)
    draft = None
    if options.draft is not None:
        draft_format = options.format if options.draft_format is None else options.draft_format
        draft = machine.as_run(load_target(options.draft, draft_format))
    return machine.as_run(target), draft


def read_context(
    options: argparse.Namespace, target: Checkpoint, draft: Checkpoint | None
) -> float:
    """The context, a whole number of tokens that the target, and the draft if any, can hold."""
    context = float(whole_number("--context", options.context, least=0, most=100_000_000))
    for checkpoint in (target, draft):
        if checkpoint is not None:
            checkpoint.check_context(context)
    return context


def read_draft_length(options: argparse.Namespace) -> int | None:
    """The draft length, or None where the best one is asked for."""
    if options.draft_length is None:
        return None
    return whole_number("--draft-length", options.draft_length, least=1, most=MAX_DRAFT_LENGTH)


def read_acceptance(options: argparse.Namespace, draft_length: int | None) -> Acceptance | None:
    """The acceptance, converted from whichever name it was given by; None where none was.

    Raises:
        InputError: not a number, outside its range, or a measure that needs a draft length.
    """
    if options.acceptance is not None:
        rates = [number("--acceptance", text) for text in options.acceptance.split(",")]
        return Acceptance(by_position=tuple(rates))
    conversions = {
        "--accepted-fraction": (options.accepted_fraction, from_accepted_fraction),
        "--draft-share": (options.draft_share, from_draft_share),
        "--tokens-per-pass": (options.tokens_per_pass, from_tokens_per_pass),
    }
    for flag, (text, convert) in conversions.items():
        if text is None:
            continue
        if draft_length is None:
            raise InputError(f"{flag} {text}", "depends on the draft length", "add --draft-length")
        return Acceptance(by_position=(convert(number(flag, text), draft_length),))
    return None


def refuse_draft_options(options: argparse.Namespace) -> None:
    """Refuse what describes a draft where there is none: it would change nothing.

    Raises:
        InputError: such an option was given.
    """
    for name in ("draft_format", "draft_length"):
        refuse_option(options, name)
    refuse_progress(options)


def refuse_progress(options: argparse.Namespace) -> None:
    """Refuse a bare acceptance, by any name, where no strategy it could mean is asked for.

    Raises:
        InputError: one was given.
    """
    for name in PROGRESS:
        refuse_option(options, name)


def bare_progress(options: argparse.Namespace) -> str | None:
    """The acceptance that is given without saying whose, as it was written; None where none is."""
    for name in PROGRESS:
        text = getattr(options, name)
        if text is not None:
            return given(f"--{name.replace('_', '-')}", text)
    return None


def refuse_option(options: argparse.Namespace, name: str) -> None:
    """Refuse an option about a draft that nobody asks for."""
    text = getattr(options, name)
    if text is not None:
        flag = f"--{name.replace('_', '-')} {text}"
        raise InputError(flag, "describes a draft, and there is none", "add --draft MODEL")


def number(flag: str, text: str) -> float:
    """A finite number from the command line."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise InputError(given(flag, text), "is not a number", "give a number such as 0.7")
    return value


def whole_number(flag: str, text: str, *, least: int, most: int) -> int:
    """A whole number in a range from the command line."""
    right = f"give a whole number {least}..{most}"
    try:
        value = int(text)
    except ValueError:
        raise InputError(given(flag, text), "is not a whole number", right) from None
    if not least <= value <= most:
        raise InputError(given(flag, text), "is out of range", right)
    return value


def given(flag: str, text: str) -> str:
    """An option as it was given; an empty value would not be seen.

    >>> print(given("--acceptance", "often"), given("--acceptance", ""))
    --acceptance often --acceptance ''
    """
    return f"{flag} {text or repr(text)}"
