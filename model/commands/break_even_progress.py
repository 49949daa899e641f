"""The acceptance that somebody has, at every draft length, to be held against the one needed.

An acceptance by position is stated as the one number that commits as many tokens, since that is
what a break-even acceptance is. Its range is what was given with `--spread`, or the range of the
published pairs; without either it is the number itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from model.commands import options as shared
from model.commands import progress_options
from model.errors import InputError
from model.prediction.round_costs import RoundCosts
from model.progress.acceptance import Acceptance, from_tokens_per_pass
from model.progress.published import published_progress
from model.progress.vocabulary import Method


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Have:
    """What is had at a draft length: the acceptance with its range, and the speedup it gives.

    `pairs` are the published pairs that it is the median of; 0 where it was given.
    """

    draft_length: int
    acceptance: float
    low: float
    high: float
    speedup: float
    pairs: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The acceptance by its names, its spread, and the task it is taken from."""
    shared.add_progress(parser)
    parser.add_argument(
        "--spread", metavar="S", help="the acceptance may be as much higher or lower"
    )
    parser.add_argument(
        "--task", metavar="TASK", help="take the acceptance from published pairs on this task"
    )


def acceptances(
    options: argparse.Namespace, lengths: Sequence[int], length: int | None
) -> tuple[Acceptance, ...]:
    """The acceptance at each draft length; none where nobody gave one.

    Raises:
        InputError: not an acceptance, a task without published ones, or both.
    """
    given, task = shared.read_acceptance(options, length), progress_options.read_task(options)
    if task is None:
        return () if given is None else (given,) * len(lengths)
    if given is not None:
        raise InputError(f"--task {options.task}", "is given beside an acceptance", "give either")
    found = [published_progress(Method.DRAFT_MODEL, task, each).acceptance for each in lengths]
    return tuple(each for each in found if each is not None)


def had(
    options: argparse.Namespace, costs: RoundCosts, known: Sequence[Acceptance]
) -> tuple[Have, ...]:
    """What these acceptances, one for each draft length, are worth.

    Raises:
        InputError: a spread of no acceptance, or one that is none.
    """
    spread = read_spread(options, known)
    found: list[Have] = []
    for index, (length, acceptance) in enumerate(zip(costs.draft_lengths, known, strict=False)):
        alike = from_tokens_per_pass(acceptance.tokens_per_pass(length), length)
        low, high, pairs = max(0.0, alike - spread), min(1.0, alike + spread), 0
        if options.task is not None:
            published = published_progress(Method.DRAFT_MODEL, options.task, length)
            tokens, pairs = published.tokens_per_pass, published.tokens_per_pass.pairs
            low = from_tokens_per_pass(tokens.lowest, length)
            high = from_tokens_per_pass(tokens.highest, length)
        found.append(
            Have(
                draft_length=length,
                acceptance=alike,
                low=low,
                high=high,
                speedup=float(costs.speedup(acceptance)[index]),
                pairs=pairs,
            )
        )
    return tuple(found)


def read_spread(options: argparse.Namespace, known: Sequence[Acceptance]) -> float:
    """How far an acceptance may be off; 0 where nobody says."""
    if options.spread is None:
        return 0.0
    what = shared.given("--spread", options.spread)
    if not known:
        raise InputError(what, "is of no acceptance", "add --acceptance")
    if options.task is not None:
        raise InputError(what, "changes nothing: a task has a spread of its own", "leave it out")
    spread = shared.number("--spread", options.spread)
    if not 0.0 <= spread <= 1.0:
        raise InputError(what, "is not a share", "give a number in [0, 1]")
    return spread
