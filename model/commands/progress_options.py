"""What the command line says of progress, and what is published where it only names a task."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from model.commands import options as shared
from model.errors import InputError, unknown_name
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.draft_head import HeadKind
from model.prediction.break_even import best_draft_length
from model.prediction.need import Need, need
from model.prediction.round_costs import round_costs
from model.progress.acceptance import Acceptance
from model.progress.published import TaskProgress, published_progress
from model.progress.sampling import exact_match_from_rejection
from model.progress.vocabulary import Method, Task
from model.strategies.block_drafter import BlockDrafter
from model.strategies.draft_head import TrainedHead
from model.strategies.drafted import AbstractDrafted

LONGEST_SEARCHED = 16
"""Draft lengths up to this one are tried where none is asked for."""

NO_ACCEPTANCE = "no acceptance was given"

METHODS: Mapping[str, Method] = {
    "speculative": Method.DRAFT_MODEL,
    "layer-skip": Method.LAYER_SKIP,
    "prompt-lookup": Method.PROMPT_LOOKUP,
    "draft-head": Method.MTP_HEAD,
    "block-drafter": Method.BLOCK_DRAFTER,
}
"""Where each drafted strategy's published rows stand."""

HEAD_METHODS = {HeadKind.EAGLE: Method.EAGLE, HeadKind.REDRAFTER: Method.DRAFT_HEADS}
"""The same for heads that are published under another word than MTP."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A strategy with its progress, and the published rows that gave it, if any did."""

    strategy: AbstractDrafted
    published: TaskProgress | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--acceptance` by its four names, `--acceptance-of`, and `--task`."""
    shared.add_progress(parser)
    parser.add_argument(
        "--acceptance-of",
        metavar="STRATEGY=A[,A...]",
        action="append",
        default=[],
        help="the acceptance of one strategy, where several are predicted",
    )
    parser.add_argument(
        "--task",
        metavar="TASK",
        help="take progress from published pairs on this task: code, math, writing, chat, ...",
    )
    parser.add_argument(
        "--collision",
        metavar="C",
        help="sampling at a temperature under mlx-lm's exact match: the probability that two "
        "samples of the target agree, by which a greedy acceptance is multiplied",
    )


def read_acceptances(options: argparse.Namespace) -> dict[str, Acceptance]:
    """The acceptances that `--acceptance-of` gives, by strategy.

    Raises:
        InputError: no `=`, an unknown strategy, or no probability.
    """
    found: dict[str, Acceptance] = {}
    for text in options.acceptance_of:
        name, equals, rates = text.partition("=")
        if not equals:
            raise InputError(
                f"--acceptance-of {text}", "names no strategy", "give e.g. layer-skip=0.6"
            )
        if name not in METHODS:
            raise unknown_name("drafted strategy", name, list(METHODS))
        if name in found:
            raise InputError(f"--acceptance-of {text}", f"is a second one of {name}", "give one")
        numbers = [shared.number(f"--acceptance-of {name}", rate) for rate in rates.split(",")]
        found[name] = Acceptance(by_position=tuple(numbers))
    return found


def check(options: argparse.Namespace, takers: set[str], *, diffuses: bool) -> None:
    """Refuse progress that no strategy would take: it would change nothing.

    `takers` are the drafted strategies that are asked about; `diffuses` says that diffusion is.

    Raises:
        InputError: an acceptance of none of them, a bare one where there is none it could mean,
            progress that is given twice, or a task or a number that cannot be.
    """
    task = read_task(options)
    told = set(read_acceptances(options))
    for name in sorted(told - takers):
        wrong = "is of a strategy that is not asked for"
        right = f"give that of {', '.join(sorted(takers))}" if takers else f"add --strategy {name}"
        raise InputError(f"--acceptance-of {name}=...", wrong, right)
    bare = shared.bare_progress(options)
    if bare is not None:
        owner = bare_owner(takers)
        if owner is None and takers:
            wrong = f"could be of {' or '.join(sorted(takers))}"
            raise InputError(bare, wrong, "say whose it is: --acceptance-of STRATEGY=A")
        if owner is None:
            shared.refuse_progress(options)
        elif owner in told:
            raise InputError(bare, f"is given beside --acceptance-of {owner}", "give either")
        else:
            told.add(owner)
    passes_told = options.steps is not None or options.committed is not None
    if task is not None and told >= takers and not (diffuses and not passes_told):
        wrong = "changes nothing where progress is given"
        raise InputError(f"--task {options.task}", wrong, "give either")


def bare_owner(takers: set[str]) -> str | None:
    """Whom a bare `--acceptance` means: the draft model where one is asked about, or the only."""
    if "speculative" in takers:
        return "speculative"
    return next(iter(takers)) if len(takers) == 1 else None


def read_task(options: argparse.Namespace) -> Task | None:
    """The task whose published progress is asked for.

    Raises:
        InputError: there is no such task.
    """
    if options.task is None:
        return None
    names = [task.value for task in Task]
    if options.task.lower() not in names:
        raise unknown_name("task", options.task, names)
    return Task(options.task.lower())


def as_sampled(acceptance: Acceptance, options: argparse.Namespace) -> Acceptance:
    """A greedy acceptance as exact match of sampled tokens has it, where that is asked for.

    Raises:
        InputError: a collision probability that is none.
    """
    if options.collision is None:
        return acceptance
    collision = shared.number("--collision", options.collision)
    rates = exact_match_from_rejection(np.array(acceptance.by_position), collision)
    return Acceptance(by_position=tuple(np.atleast_1d(rates).tolist()))


def settled(
    strategy: AbstractDrafted,
    options: argparse.Namespace,
    target: Checkpoint,
    machine: Machine,
    *,
    context: float,
    takes_bare_acceptance: bool,
) -> Settled | Need:
    """The strategy with the progress that is known of it, or what it would need.

    `takes_bare_acceptance` says that `--acceptance`, without a name, means this strategy.

    Raises:
        InputError: an acceptance or a draft length that cannot be, or as pricing rounds does.
    """
    task = read_task(options)
    length = shared.read_draft_length(options)
    lengths = (length,) if length is not None else searched_lengths(strategy)
    acceptance = read_acceptances(options).get(strategy.name)
    if acceptance is None and takes_bare_acceptance:
        acceptance = shared.read_acceptance(options, length)
    if acceptance is not None:
        acceptance = as_sampled(acceptance, options)
        costs = round_costs(strategy, target, machine, context=context, draft_lengths=lengths)
        best = best_draft_length(costs, acceptance).draft_length
        return Settled(strategy=with_progress(strategy, best, acceptance))
    reason = NO_ACCEPTANCE
    if task is not None:
        try:
            return from_task(strategy, task, lengths, target, machine, options, context=context)
        except InputError as error:
            reason = str(error)
    return need(strategy, target, machine, context=context, draft_lengths=lengths, reason=reason)


def from_task(
    strategy: AbstractDrafted,
    task: Task,
    lengths: tuple[int, ...],
    target: Checkpoint,
    machine: Machine,
    options: argparse.Namespace,
    *,
    context: float,
) -> Settled:
    """The strategy with published progress, at the draft length that makes most of it.

    Raises:
        InputError: an unknown task, or nothing published that can be used.
    """
    choices: list[tuple[float, Settled]] = []
    for length in lengths:
        published = published_progress(method_of(strategy), task, length)
        if published.acceptance is None:
            raise AssertionError("a draft length gives an acceptance")
        costs = round_costs(strategy, target, machine, context=context, draft_lengths=(length,))
        acceptance = as_sampled(published.acceptance, options)
        speedup = float(costs.speedup(acceptance)[0])
        found = with_progress(strategy, length, acceptance)
        choices.append((speedup, Settled(strategy=found, published=published)))
    return max(choices, key=lambda choice: choice[0])[1]


def method_of(strategy: AbstractDrafted) -> Method:
    """The published method that a strategy belongs to."""
    if isinstance(strategy, TrainedHead):
        return HEAD_METHODS.get(strategy.design.kind, Method.MTP_HEAD)
    return METHODS[strategy.name]


def searched_lengths(strategy: AbstractDrafted) -> tuple[int, ...]:
    """The draft lengths that are tried: up to 16, or what a block holds."""
    longest = LONGEST_SEARCHED
    if isinstance(strategy, BlockDrafter) and strategy.design.longest_draft is not None:
        longest = min(longest, strategy.design.longest_draft)
    return tuple(range(1, longest + 1))


def with_progress(
    strategy: AbstractDrafted, draft_length: int, acceptance: Acceptance
) -> AbstractDrafted:
    """The same strategy at this draft length and acceptance."""
    return strategy.with_length(draft_length).with_acceptance(acceptance)
