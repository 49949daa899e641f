"""What the command line says of progress, and what is published where it only names a task."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

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
        numbers = [shared.number("--acceptance-of", rate) for rate in rates.split(",")]
        found[name] = Acceptance(by_position=tuple(numbers))
    return found


def check(options: argparse.Namespace, takers: set[str]) -> None:
    """Refuse progress that no strategy would take: it would change nothing.

    `takers` are the strategies that are asked about.

    Raises:
        InputError: an acceptance of none of them, a bare one where there is none it could mean, or
            a task or a number that cannot be.
    """
    read_task(options)
    for name in read_acceptances(options):
        if name not in takers:
            wrong = "is of a strategy that is not asked for"
            raise InputError(f"--acceptance-of {name}=...", wrong, f"add --strategy {name}")
    if "speculative" in takers or len(takers) == 1:
        return
    if takers and options.acceptance is not None:
        wrong = f"could be of {' or '.join(sorted(takers))}"
        right = "say whose it is: --acceptance-of STRATEGY=A"
        raise InputError(f"--acceptance {options.acceptance}", wrong, right)
    shared.refuse_progress(options)


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
        costs = round_costs(strategy, target, machine, context=context, draft_lengths=lengths)
        best = best_draft_length(costs, acceptance).draft_length
        return Settled(strategy=with_progress(strategy, best, acceptance))
    reason = NO_ACCEPTANCE
    if task is not None:
        try:
            return from_task(strategy, task, lengths, target, machine, context=context)
        except InputError as error:
            reason = str(error)
    return need(strategy, target, machine, context=context, draft_lengths=lengths, reason=reason)


def from_task(
    strategy: AbstractDrafted,
    task: Task,
    lengths: tuple[int, ...],
    target: Checkpoint,
    machine: Machine,
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
        speedup = float(costs.speedup(published.acceptance)[0])
        found = with_progress(strategy, length, published.acceptance)
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
