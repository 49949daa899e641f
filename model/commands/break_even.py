"""`tokroof break-even`: the acceptance a draft needs, by draft length."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import final

from model.commands import machine_options
from model.commands import options as shared
from model.commands.machine_options import ChosenMachine
from model.commands.prediction_text import span
from model.commands.table import table
from model.network.checkpoint import Checkpoint
from model.prediction.break_even import BestDraftLength, best_draft_length, break_even
from model.prediction.memory import check_fits
from model.prediction.prediction import Prediction, predict
from model.prediction.round_costs import RoundCosts, round_costs
from model.progress.acceptance import Acceptance
from model.strategies.speculative import Speculative

DEFAULT_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `break-even`."""
    shared.add_pair(parser, draft_required=True)
    parser.add_argument("--draft-length", metavar="K", help="one draft length (default: 1 to 8)")
    shared.add_progress(parser)
    machine_options.add_arguments(parser)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEvenRow:
    """One draft length: the acceptance it needs, its price, and the most it can give.

    `round_cost` is a round after a rejection in plain tokens, `best_speedup` the speedup when
    every draft token is accepted.
    """

    draft_length: int
    break_even_acceptance: float | None
    round_cost: float
    best_speedup: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """What a draft needs on a machine, and what it gives at an acceptance, if one was given.

    `costs` are of every draft length that was asked about, `rows` what follows from them.
    """

    choice: ChosenMachine
    target: Checkpoint
    draft: Checkpoint
    context: float
    strategy: Speculative
    costs: RoundCosts
    rows: tuple[BreakEvenRow, ...]
    acceptance: Acceptance | None
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
    context = shared.read_context(options, target, draft)
    check_fits([target, draft], machine, context=context)
    length = shared.read_draft_length(options)
    lengths = DEFAULT_LENGTHS if length is None else (length,)
    never = Acceptance(by_position=(0.0,))
    strategy = Speculative(draft=draft, draft_length=1, acceptance=never)
    costs = round_costs(strategy, target, machine, context=context, draft_lengths=lengths)
    acceptance = shared.read_acceptance(options, length)
    best = predicted = None
    if acceptance is not None:
        best = best_draft_length(costs, acceptance)
        strategy = strategy.with_length(best.draft_length).with_acceptance(acceptance)
        predicted = predict(strategy, target, choice.profile, context=context)
    return Solved(
        choice=choice,
        target=target,
        draft=draft,
        context=context,
        strategy=strategy,
        costs=costs,
        rows=tuple(break_even_rows(costs)),
        acceptance=acceptance,
        best=best,
        predicted=predicted,
    )


def execute(options: argparse.Namespace) -> int:
    """Solve and print."""
    found = solve(options)
    choice, target, draft, context = found.choice, found.target, found.draft, found.context
    machine, best, predicted = choice.profile.machine, found.best, found.predicted
    if options.json:
        document: dict[str, object] = {
            "target": target.architecture.name,
            "format": target.weight_format.name,
            "draft": draft.architecture.name,
            "draft_format": draft.weight_format.name,
            "machine": machine.name,
            "runtime": machine.runtime,
            "context": context,
            "break_even": [asdict(row) for row in found.rows],
        }
        if best is not None and predicted is not None:
            document["best"] = asdict(best) | {
                "regret": {str(k): lost for k, lost in best.regret},
                "speedup_interval_90": predicted.speedup_interval_90,
                "verdict": predicted.verdict,
            }
        print(json.dumps(document, indent=2))
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(
        f"{target.architecture.name} {target.weight_format.name} drafted by "
        f"{draft.architecture.name} {draft.weight_format.name} on {machine.chip} "
        f"({machine.runtime}), {context:g} tokens of context"
    )
    print(as_text(found.rows))
    if best is not None and predicted is not None:
        regret = "".join(f"; k={k} loses {100 * lost:.0f} %" for k, lost in best.regret)
        print(
            f"best: k={best.draft_length} at speedup {best.speedup:.2f} "
            f"({span(predicted.speedup_interval_90, 2)}), {predicted.verdict}{regret}"
        )
    return 0


def break_even_rows(costs: RoundCosts) -> list[BreakEvenRow]:
    """A row for each draft length."""
    always_right = costs.speedup(Acceptance(by_position=(1.0,)))
    return [
        BreakEvenRow(
            draft_length=length,
            break_even_acceptance=needed,
            round_cost=float(missed_s / costs.plain_s),
            best_speedup=float(speedup),
        )
        for length, needed, missed_s, speedup in zip(
            costs.draft_lengths, break_even(costs), costs.missed_s, always_right, strict=True
        )
    ]


def as_text(rows: Sequence[BreakEvenRow]) -> str:
    """The table, and the sentence that follows from it."""
    cells = [
        [
            str(row.draft_length),
            "no acceptance wins"
            if row.break_even_acceptance is None
            else f"{row.break_even_acceptance:.3f}",
            f"{row.round_cost:.2f}",
            f"{row.best_speedup:.2f}",
        ]
        for row in rows
    ]
    text = table(["k", "break-even acceptance", "round / plain token", "best speedup"], cells)
    if all(row.break_even_acceptance is None for row in rows):
        price = min(1.0 / row.best_speedup for row in rows)
        text += (
            "\nNo acceptance wins: even a draft that is always right costs "
            f"{price:.2f} plain tokens for each token it commits."
        )
    return text
