"""All claims, by the name that the command takes, in the order of the articles."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from model.articles import (
    boring_wins,
    diffusion,
    draft_length,
    fewer_bits,
    five_tokens,
    layer_skip,
    one_read,
)
from model.articles.bench import Bench
from model.articles.claim import Claim, Unanswered
from model.errors import InputError, unknown_name

CLAIMS: Mapping[str, Callable[[Bench], Claim]] = {
    "fewer-bits": fewer_bits.examined,
    "one-read": one_read.examined,
    "five-tokens": five_tokens.examined,
    "draft-length": draft_length.examined,
    "diffusion": diffusion.examined,
    "layer-skip": layer_skip.examined,
    "boring-wins": boring_wins.examined,
}


def examine(bench: Bench, name: str | None = None) -> tuple[Claim | Unanswered, ...]:
    """One claim, or all of them, where a format that was never measured is an answer of its own.

    Raises:
        InputError: no such claim, or one whose format the machine was never measured with.
    """
    if name is None:
        return tuple(examined_or_not(bench, each) for each in CLAIMS)
    if name not in CLAIMS:
        raise unknown_name("claim", name, CLAIMS)
    return (CLAIMS[name](bench),)


def examined_or_not(bench: Bench, name: str) -> Claim | Unanswered:
    """A claim, or why the machine cannot say."""
    try:
        return CLAIMS[name](bench)
    except InputError as error:
        return Unanswered(id=name, reason=str(error))
