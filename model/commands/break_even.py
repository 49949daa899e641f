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
from model.commands.prediction_text import span
from model.commands.table import table
from model.prediction.break_even import best_draft_length, break_even
from model.prediction.memory import check_fits
from model.prediction.prediction import predict
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


def execute(options: argparse.Namespace) -> int:
    """Solve and print."""
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
    drafted = Speculative(draft=draft, draft_length=1, acceptance=never)
    costs = round_costs(drafted, target, machine, context=context, draft_lengths=lengths)
    acceptance = shared.read_acceptance(options, length)
    rows = break_even_rows(costs)
    best = predicted = None
    if acceptance is not None:
        best = best_draft_length(costs, acceptance)
        strategy = drafted.with_length(best.draft_length).with_acceptance(acceptance)
        predicted = predict(strategy, target, choice.profile, context=context)
    if options.json:
        document: dict[str, object] = {
            "target": target.architecture.name,
            "format": target.weight_format.name,
            "draft": draft.architecture.name,
            "draft_format": draft.weight_format.name,
            "machine": machine.name,
            "runtime": machine.runtime,
            "context": context,
            "break_even": [asdict(row) for row in rows],
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
    print(as_text(rows))
    if best is not None and predicted is not None:
        regret = "".join(f"; k={k} loses {100 * lost:.0f} %" for k, lost in best.regret)
        print(
            f"best: k={best.draft_length} at speedup {best.speedup:.2f} "
            f"({span(predicted.speedup_interval_90, 2)}), {predicted.verdict}{regret}"
        )
    return 0


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
