"""The options of `plan`: which trick each belongs to, and the lists that they become."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from model.commands import machine_options
from model.commands import options as shared
from model.errors import InputError, unknown_name
from model.progress.acceptance import MAX_DRAFT_LENGTH
from model.progress.skip_curve import SkipPoint

FRACTIONS = "0.125,0.25,0.375,0.5"
DRAFT_LENGTHS = "1,2,4,8"
ANSWERS = "2,8,32,128,512"
COMMITTED = "1,2,4.4,8"
BLOCK = "32"

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "layer-skip": ("draft_lengths", "fractions", "measured"),
    "sublayers": ("draft_lengths", "factors"),
    "diffusion": (
        *("rival", "rival_format", "block", "canvas", "block_cache", "answers", "committed"),
    ),
}
"""The options that each trick takes; they would change nothing for others."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TRICK, TARGET, the machine, and the settings of every trick."""
    parser.add_argument("trick", metavar="TRICK", help=", ".join(SETTINGS))
    shared.add_target(parser)
    skip = parser.add_argument_group("layer-skip and sublayers")
    skip.add_argument(
        "--draft-lengths",
        metavar="K[,K...]",
        help=f"draft tokens per round (default: {DRAFT_LENGTHS})",
    )
    skip.add_argument(
        "--fractions",
        metavar="F[,F...]",
        help=f"layer-skip: shares of the layers (default: {FRACTIONS})",
    )
    skip.add_argument(
        "--measured",
        metavar="F=A[,F=A...]",
        help="layer-skip: acceptances that were measured by skipped share, e.g. 0.25=0.7,0.5=0.06",
    )
    skip.add_argument(
        "--factors",
        metavar="FILE",
        help="sublayers: what skipping each of them does to the acceptance",
    )
    diffusion = parser.add_argument_group("diffusion")
    diffusion.add_argument("--rival", metavar="MODEL", help="decodes plainly (default: TARGET)")
    diffusion.add_argument("--rival-format", metavar="F", help="(default: --format)")
    diffusion.add_argument("--block", metavar="TOKENS", help=f"(default: {BLOCK})")
    diffusion.add_argument("--canvas", metavar="TOKENS", help="rows of every pass")
    diffusion.add_argument("--block-cache", action="store_true", help="cache what was written")
    diffusion.add_argument(
        "--answers", metavar="N[,N...]", help=f"their lengths (default: {ANSWERS})"
    )
    diffusion.add_argument(
        "--committed",
        metavar="X[,X...]",
        help=f"tokens fixed in a pass (default: {COMMITTED})",
    )
    machine_options.add_arguments(parser)


def check(options: argparse.Namespace) -> None:
    """Refuse an unknown trick, and settings of other tricks.

    Raises:
        InputError: such a trick or setting was given.
    """
    if options.trick not in SETTINGS:
        raise unknown_name("trick", options.trick, list(SETTINGS))
    for name in sorted({name for names in SETTINGS.values() for name in names}):
        value = getattr(options, name)
        if value in (None, False) or name in SETTINGS[options.trick]:
            continue
        flag = f"--{name.replace('_', '-')}"
        owners = [trick for trick, names in SETTINGS.items() if name in names]
        raise InputError(
            flag if value is True else shared.given(flag, value),
            f"changes nothing in a plan of {options.trick}",
            f"leave it out, or plan {' or '.join(owners)}",
        )


def measured_points(text: str) -> list[SkipPoint]:
    """The points of `--measured`; each counts alike."""
    points: list[SkipPoint] = []
    for pair in text.split(","):
        fraction, equals, acceptance = pair.partition("=")
        if not equals:
            raise InputError(f"--measured {pair}", "is not FRACTION=ACCEPTANCE", "e.g. 0.5=0.06")
        points.append(
            SkipPoint(
                skip_fraction=shared.number("--measured", fraction),
                acceptance=shared.number("--measured", acceptance),
                drafted_tokens=1,
            )
        )
    return points


def fractions(options: argparse.Namespace) -> tuple[str, ...]:
    """The skipped shares that are planned for, as they were written."""
    text: str = FRACTIONS if options.fractions is None else options.fractions
    return once("--fractions", text)


def draft_lengths(options: argparse.Namespace) -> tuple[int, ...]:
    """The draft lengths that are planned for."""
    text: str = DRAFT_LENGTHS if options.draft_lengths is None else options.draft_lengths
    return tuple(
        shared.whole_number("--draft-lengths", each, least=1, most=MAX_DRAFT_LENGTH)
        for each in once("--draft-lengths", text)
    )


def block_length(options: argparse.Namespace) -> int:
    """The tokens of a block."""
    text: str = BLOCK if options.block is None else options.block
    return shared.whole_number("--block", text, least=1, most=1_000_000)


def answer_lengths(options: argparse.Namespace) -> tuple[int, ...]:
    """The answers that are planned for, in tokens."""
    text: str = ANSWERS if options.answers is None else options.answers
    return tuple(
        shared.whole_number("--answers", each, least=1, most=1_000_000)
        for each in once("--answers", text)
    )


def committed(options: argparse.Namespace) -> tuple[float, ...]:
    """The tokens fixed in a pass that are planned for."""
    text: str = COMMITTED if options.committed is None else options.committed
    return tuple(shared.number("--committed", each) for each in once("--committed", text))


def once(flag: str, text: str) -> tuple[str, ...]:
    """What stands between commas, each once.

    >>> once("--draft-lengths", "1,2")
    ('1', '2')

    Raises:
        InputError: something is there twice.
    """
    found = tuple(text.split(","))
    for index, each in enumerate(found):
        if each in found[:index]:
            raise InputError(f"{flag} {text}", f"has {each or repr(each)} twice", "give it once")
    return found
