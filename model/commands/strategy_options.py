"""Which strategies a person asks for, and the options that describe them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import cast

from model.commands import options as shared
from model.commands import progress_options
from model.commands.strategy_builders import (
    ALL,
    BUILDERS,
    Entry,
    Question,
    Refused,
    head_strategies,
)
from model.errors import InputError, unknown_name

DRAFTED = frozenset(progress_options.METHODS) & frozenset(BUILDERS)
DIFFUSION = frozenset({"diffusion"})
LAYER_SKIP = frozenset({"layer-skip"})

SETTING_OF: Mapping[str, frozenset[str]] = {
    "draft": frozenset({"speculative"}),
    "draft_format": frozenset({"speculative"}),
    "draft_length": DRAFTED,
    "shared_experts": DRAFTED | DIFFUSION | {"batch"},
    "collision": DRAFTED,
    "task": DRAFTED | DIFFUSION,
    "batch": DRAFTED | {"batch"},
    "head": frozenset({"draft-head"}),
    "head_format": frozenset({"draft-head"}),
    "beams": frozenset({"draft-head"}),
    "tree_rows": frozenset({"draft-head"}),
    "skip": LAYER_SKIP,
    "skip_attention": LAYER_SKIP,
    "skip_mlp": LAYER_SKIP,
    "match": frozenset({"prompt-lookup"}),
    "block": DIFFUSION,
    "steps": DIFFUSION,
    "committed": DIFFUSION,
    "answer": DIFFUSION,
    "canvas": DIFFUSION,
    "block_cache": DIFFUSION,
    "instead": frozenset({"instead"}),
}
"""The strategies that each option describes; it would change nothing for others."""


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
    group.add_argument("--beams", metavar="W", help="drafts of the head that share a verify pass")
    group.add_argument("--tree-rows", metavar="N", help="its rows (default: beams share no token)")
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
        InputError: settings that are missing or cannot be.
    """
    if question.options.strategy == ALL:
        return [entry for name in BUILDERS for entry in _all_of(name, question)]
    return [entry for name in named(question) for entry in BUILDERS[name](question)]


def check(question: Question) -> None:
    """Refuse strategies that there are not, and options that would change nothing.

    Raises:
        InputError: an unknown strategy, one that is named twice, or an option that describes
            none of those that are asked for.
    """
    names = named(question)
    for index, name in enumerate(names):
        if name == ALL and len(names) > 1:
            raise InputError(
                f"--strategy {question.options.strategy}", f"{ALL!r} stands alone", "give either"
            )
        if name not in BUILDERS and name != ALL:
            raise unknown_name("strategy", name, [*BUILDERS, ALL])
        if name in names[:index]:
            raise InputError(f"strategy {name}", "is named twice", "name it once")
    for option, strategies in SETTING_OF.items():
        value = getattr(question.options, option)
        if not value and value != "":
            continue
        if names == [ALL] or not strategies.isdisjoint(names):
            continue
        takers_of_it = [each for each in BUILDERS if each in strategies]
        one = "" if len(takers_of_it) == 1 else "one of "
        raise InputError(
            _as_given(option, value),
            f"changes nothing for --strategy {','.join(names)}",
            f"leave it out, or ask for {one}{', '.join(takers_of_it)}",
        )
    progress_options.check(
        question.options, takers(question), diffuses=names == [ALL] or "diffusion" in names
    )


def _as_given(option: str, value: object) -> str:
    flag = f"--{option.replace('_', '-')}"
    if value is True:
        return flag
    text = cast("list[str]", value)[0] if isinstance(value, list) else str(value)
    return shared.given(flag, text)


def named(question: Question) -> list[str]:
    """The strategies that are asked for by name, or the usual ones."""
    asked = question.options.strategy
    if asked is not None:
        return asked.split(",")
    return ["plain"] if question.draft is None else ["plain", "speculative"]


def takers(question: Question) -> set[str]:
    """The strategies that a bare `--acceptance` or an `--acceptance-of` can be about."""
    everything = question.options.strategy == ALL
    names = set(BUILDERS if everything else named(question)) & DRAFTED
    if everything and question.draft is None:
        names -= {"speculative"}
    if "draft-head" in names:
        names = names - {"draft-head"} | head_strategies(question)
    return names


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
