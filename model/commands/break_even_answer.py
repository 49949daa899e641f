"""The answer to `break-even`'s question before anybody says it, for command line and charts."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from model.commands import break_even_progress, machine_options, network_options
from model.commands import options as shared
from model.commands.break_even_progress import Have
from model.commands.machine_options import ChosenMachine
from model.errors import InputError
from model.network.checkpoint import Checkpoint
from model.prediction.break_even import BestDraftLength, best_of, break_even
from model.prediction.memory import check_fits
from model.prediction.needed_range import NeededRange, needed_ranges
from model.prediction.prediction import Prediction, predict
from model.prediction.round_costs import RoundCosts, round_costs
from model.progress.acceptance import MAX_DRAFT_LENGTH, Acceptance
from model.strategies.plain import MAX_BATCH
from model.strategies.speculative import Speculative

DEFAULT_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEvenRow:
    """One draft length: the acceptance it needs, its price, and the most it can give.

    `needed_low` and `needed_high` end the 90 % interval of the acceptance needed
    (:class:`model.prediction.needed_range.NeededRange` says when they are None).
    `round_cost` is a round after a rejection in plain tokens, `best_speedup` the speedup when
    every draft token is accepted.
    """

    draft_length: int
    break_even_acceptance: float | None
    needed_low: float | None
    needed_high: float | None
    round_cost: float
    best_speedup: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupRow:
    """The speedups of one acceptance, one for each draft length."""

    acceptance: float
    speedups: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """What a draft needs on a machine, and what it gives at an acceptance, if one was given.

    `costs` are of every draft length that was asked about, `rows` what follows from them, `have`
    the acceptance that is had at each, and `map` the speedups of other acceptances.
    """

    choice: ChosenMachine
    target: Checkpoint
    draft: Checkpoint
    context: float
    strategy: Speculative
    costs: RoundCosts
    rows: tuple[BreakEvenRow, ...]
    map: tuple[SpeedupRow, ...]
    have: tuple[Have, ...]
    best: BestDraftLength | None
    predicted: Prediction | None


def solve(options: argparse.Namespace) -> Solved:
    """Solve for the acceptance that the options of `break-even` ask about.

    Raises:
        InputError: an option that is wrong, or a pair that does not fit into the machine.
    """
    choice = machine_options.chosen_machine(options)
    machine = choice.profile.machine
    target, draft = shared.load_pair(options, machine)
    if draft is None:
        raise AssertionError("argparse requires --draft")
    target = network_options.with_settings(options, target)
    if options.kv_format is not None:
        draft = network_options.with_cache(options.kv_format, draft)
    context = shared.read_context(options, target, draft)
    batch = read_batch(options)
    check_fits([target, draft], machine, context=context, caches=batch)
    length = shared.read_draft_length(options)
    lengths = read_lengths(options, length)
    never = Acceptance(by_position=(0.0,))
    strategy = Speculative(draft=draft, draft_length=1, acceptance=never, sequences=batch)
    costs = round_costs(strategy, target, machine, context=context, draft_lengths=lengths)
    ranges = needed_ranges(strategy, target, choice.profile, context=context, draft_lengths=lengths)
    known = break_even_progress.acceptances(options, lengths, length)
    have = break_even_progress.had(options, costs, known)
    best = predicted = None
    if have:
        best = best_of(lengths, np.array([each.speedup for each in have]))
        acceptance = known[lengths.index(best.draft_length)]
        strategy = strategy.with_length(best.draft_length).with_acceptance(acceptance)
        predicted = predict(strategy, target, choice.profile, context=context)
    return Solved(
        choice=choice,
        target=target,
        draft=draft,
        context=context,
        strategy=strategy,
        costs=costs,
        rows=tuple(break_even_rows(costs, ranges)),
        map=speedup_rows(options, costs),
        have=have,
        best=best,
        predicted=predicted,
    )


def read_batch(options: argparse.Namespace) -> int:
    """Sequences side by side."""
    if options.batch is None:
        return 1
    return shared.whole_number("--batch", options.batch, least=1, most=MAX_BATCH)


def read_lengths(options: argparse.Namespace, length: int | None) -> tuple[int, ...]:
    """The draft lengths that are asked about: one, or 1 to the longest."""
    if options.longest is None:
        return DEFAULT_LENGTHS if length is None else (length,)
    if length is not None:
        what = shared.given("--longest", options.longest)
        raise InputError(what, "is given beside --draft-length", "give either")
    longest = shared.whole_number("--longest", options.longest, least=1, most=MAX_DRAFT_LENGTH)
    return tuple(range(1, longest + 1))


def break_even_rows(costs: RoundCosts, ranges: Sequence[NeededRange]) -> list[BreakEvenRow]:
    """A row for each draft length."""
    always_right = costs.speedup(Acceptance(by_position=(1.0,)))
    return [
        BreakEvenRow(
            draft_length=length,
            break_even_acceptance=needed,
            needed_low=unsure.low,
            needed_high=unsure.high,
            round_cost=float(missed_s / costs.plain_s),
            best_speedup=float(speedup),
        )
        for length, needed, unsure, missed_s, speedup in zip(
            costs.draft_lengths,
            break_even(costs),
            ranges,
            costs.missed_s,
            always_right,
            strict=True,
        )
    ]


def speedup_rows(options: argparse.Namespace, costs: RoundCosts) -> tuple[SpeedupRow, ...]:
    """The map of speedups, from acceptance 0 to 1; none where nobody asks for it."""
    if options.map is None:
        return ()
    step = shared.number("--map", options.map)
    if not 0.005 <= step <= 1.0:
        what = shared.given("--map", options.map)
        raise InputError(what, "is no step of the map", "give a number in [0.005, 1]")
    steps = np.arange(math.ceil(1.0 / step - 1e-9)).astype(np.float64)
    grid = np.append(np.round(step * steps, 12), 1.0)
    return tuple(
        SpeedupRow(acceptance=acceptance, speedups=tuple(speedups))
        for acceptance, speedups in zip(
            grid.tolist(), costs.speedup_map(grid).tolist(), strict=True
        )
    )
