"""`tokroof break-even`: the acceptance a draft needs, by draft length."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from model.commands import break_even_progress, machine_options, network_options
from model.commands import options as shared
from model.commands.break_even_answer import BreakEvenRow, Solved, solve
from model.commands.prediction_text import span
from model.commands.table import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `break-even`."""
    shared.add_pair(parser, draft_required=True)
    network_options.add_arguments(parser)
    parser.add_argument("--batch", metavar="B", help="sequences side by side (default: 1)")
    parser.add_argument("--draft-length", metavar="K", help="one draft length (default: 1 to 8)")
    parser.add_argument("--longest", metavar="K", help="draft lengths 1 to K (default: 8)")
    parser.add_argument(
        "--map", metavar="STEP", help="also the speedup at acceptances 0, STEP, 2 STEP, ... 1"
    )
    break_even_progress.add_arguments(parser)
    machine_options.add_arguments(parser)


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
            "have": [asdict(each) for each in found.have],
            "map": [asdict(row) for row in found.map],
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
        f"{target.label} drafted by {draft.label} on {machine.chip} ({machine.runtime}), "
        f"{context:g} tokens of context"
    )
    print(as_text(found.rows))
    if found.map:
        print(map_text(found))
    if best is not None and predicted is not None:
        regret = "".join(f"; k={k} loses {100 * lost:.0f} %" for k, lost in best.regret)
        print(
            f"best: k={best.draft_length} at speedup {best.speedup:.2f} "
            f"({span(predicted.speedup_interval_90, 2)}), {predicted.verdict}{regret}"
        )
        print(standing(found))
    return 0


def as_text(rows: Sequence[BreakEvenRow]) -> str:
    """The table, and the sentence that follows from it."""
    cells = [
        [
            str(row.draft_length),
            "no acceptance wins"
            if row.break_even_acceptance is None
            else f"{row.break_even_acceptance:.3f}",
            needed_span(row),
            f"{row.round_cost:.2f}",
            f"{row.best_speedup:.2f}",
        ]
        for row in rows
    ]
    text = table(
        ["k", "break-even acceptance", "it, 90 %", "round / plain token", "best speedup"], cells
    )
    if all(row.break_even_acceptance is None for row in rows):
        price = min(1.0 / row.best_speedup for row in rows)
        text += (
            "\nNo acceptance wins: even a draft that is always right costs "
            f"{price:.2f} plain tokens for each token it commits."
        )
    return text


def needed_span(row: BreakEvenRow) -> str:
    """The 90 % interval of the acceptance needed; an end that no acceptance has is said."""
    if row.needed_low is None:
        return "-"
    if row.needed_high is None:
        return f"from {row.needed_low:.2f}, none surely wins"
    return f"{row.needed_low:.2f} to {row.needed_high:.2f}"


def map_text(found: Solved) -> str:
    """The map as a table: a row for each acceptance, a column for each draft length."""
    header = ["acceptance", *(f"k={length}" for length in found.costs.draft_lengths)]
    cells = [
        [f"{row.acceptance:.3g}", *(f"{speedup:.2f}" for speedup in row.speedups)]
        for row in found.map
    ]
    return table(header, cells)


def standing(found: Solved) -> str:
    """What is had against what is needed, at the draft length that makes most of it."""
    if found.best is None:
        raise AssertionError("nobody said what is had")
    index = found.costs.draft_lengths.index(found.best.draft_length)
    had, needed = found.have[index], found.rows[index].break_even_acceptance
    text = f"you have {had.acceptance:.2f}"
    if had.pairs:
        of = "that of one published pair"
        if had.pairs > 1:
            of = f"the median of {had.pairs} published pairs ({had.low:.2f} to {had.high:.2f})"
        text += f", {of}"
    elif had.low < had.high:
        text += f" ({had.low:.2f} to {had.high:.2f})"
    if needed is None:
        return f"{text}; no acceptance wins at k={had.draft_length}"
    unsure = needed_span(found.rows[index])
    return f"{text}, you need {needed:.2f} ({unsure}; k={had.draft_length})"
