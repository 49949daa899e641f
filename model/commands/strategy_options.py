"""Which strategies a person asks for, and the options that describe them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from model.commands import progress_options
from model.commands.strategy_builders import ALL, BUILDERS, Entry, Question, Refused
from model.errors import InputError, unknown_name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--strategy` and the settings of every strategy."""
    parser.add_argument(
        "--strategy",
        metavar="NAME[,NAME...]",
        help=f"{', '.join(BUILDERS)}, or {ALL} (default: plain, and speculative with --draft)",
    )
    progress_options.add_arguments(parser)
    group = parser.add_argument_group("settings of strategies")
    group.add_argument("--batch", metavar="B", help="sequences side by side (default: 1)")
    group.add_argument("--head", metavar="HEAD", help="a trained draft head of the target")
    group.add_argument("--head-format", metavar="F", help="its weight format (default: bf16)")
    group.add_argument("--skip", metavar="FRACTION", help="share of middle layers to skip")
    group.add_argument("--skip-attention", metavar="I[,I...]", help="layers that skip attention")
    group.add_argument("--skip-mlp", metavar="I[,I...]", help="layers that skip their MLP")
    group.add_argument("--match", metavar="SHARE", help="share of rounds where the lookup matches")
    group.add_argument("--block", metavar="TOKENS", help="diffusion: tokens of a block")
    group.add_argument("--steps", metavar="N", help="diffusion: denoising passes for a block")
    group.add_argument("--committed", metavar="X", help="diffusion: tokens fixed in a pass")
    group.add_argument("--answer", metavar="TOKENS", help="diffusion: length of the answer")
    group.add_argument("--canvas", metavar="TOKENS", help="diffusion: rows of every pass")
    group.add_argument(
        "--block-cache", action="store_true", help="diffusion: keep what was written in a cache"
    )
    group.add_argument(
        "--instead",
        metavar="MODEL[@FORMAT]",
        action="append",
        default=[],
        help="another network, or the same in another format, decoding plainly",
    )


def entries(question: Question) -> list[Entry]:
    """Every strategy that is asked for, with its progress or what it would need.

    Raises:
        InputError: an unknown strategy, or settings that are missing or cannot be.
    """
    asked = question.options.strategy
    progress_options.check(question.options, takers(question))
    if asked == ALL:
        return [entry for name in BUILDERS for entry in _all_of(name, question)]
    names = named(question)
    for name in names:
        if name not in BUILDERS:
            raise unknown_name("strategy", name, [*BUILDERS, ALL])
    return [entry for name in names for entry in BUILDERS[name](question)]


def named(question: Question) -> list[str]:
    """The strategies that are asked for by name, or the usual ones."""
    asked = question.options.strategy
    if asked is not None:
        return asked.split(",")
    return ["plain"] if question.draft is None else ["plain", "speculative"]


def takers(question: Question) -> set[str]:
    """The strategies that a bare `--acceptance` or an `--acceptance-of` can be about."""
    if question.options.strategy != ALL:
        return {name for name in named(question) if name in progress_options.METHODS}
    without_draft = {"speculative"} if question.draft is None else set[str]()
    return set(progress_options.METHODS) - without_draft


def asks_for_one(options: argparse.Namespace) -> bool:
    """Whether a bare `--acceptance` can mean one strategy only."""
    names = (options.strategy or "speculative").split(",")
    return len([name for name in names if name in progress_options.METHODS]) == 1


def _all_of(name: str, question: Question) -> Iterator[Entry]:
    """The entries of one strategy among all of them; where it cannot be, the reason."""
    try:
        yield from BUILDERS[name](question)
    except InputError as error:
        if name == "plain":
            raise
        yield Refused(strategy=name, reason=str(error))
