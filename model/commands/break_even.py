"""`tokroof break-even`: the acceptance a draft needs, by draft length."""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np

from model.break_even import RoundCosts, best_draft_length, round_costs
from model.commands import options as shared
from model.commands.table import table
from model.memory import check_fits
from model.profile_store import choose_profile

DEFAULT_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `break-even`."""
    shared.add_pair(parser, draft_required=True)
    parser.add_argument("--draft-length", metavar="K", help="one draft length (default: 1 to 8)")
    shared.add_progress(parser)
    shared.add_machine(parser)


def execute(options: argparse.Namespace) -> int:
    """Solve and print."""
    choice = choose_profile(options.machine)
    machine = choice.profile.machine
    target, draft = shared.load_pair(options, machine)
    if draft is None:
        raise AssertionError("argparse requires --draft")
    context = shared.read_context(options, target, draft)
    check_fits([target, draft], machine, context=context)
    length = shared.read_draft_length(options)
    lengths = DEFAULT_LENGTHS if length is None else (length,)
    costs = round_costs(target, draft, machine, context=context, draft_lengths=lengths)
    acceptance = shared.read_acceptance(options, length)
    needed = costs.break_even()
    rows = [
        {
            "draft_length": k,
            "break_even_acceptance": least,
            "round_cost": float(missed_s / costs.plain_s),
            "best_speedup": best_speedup(costs, i),
        }
        for i, (k, least, missed_s) in enumerate(zip(lengths, needed, costs.missed_s, strict=True))
    ]
    document: dict[str, object] = {
        "target": target.architecture.name,
        "draft": draft.architecture.name,
        "machine": machine.name,
        "context": context,
        "break_even": rows,
    }
    if acceptance is not None:
        best = best_draft_length(costs, acceptance)
        document["best"] = {
            "draft_length": best.draft_length,
            "speedup": best.speedup,
            "regret": {str(k): regret for k, regret in best.regret},
        }
    if options.json:
        print(json.dumps(document, indent=2))
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(
        f"{target.architecture.name} drafted by {draft.architecture.name} on {machine.chip} "
        f"({machine.runtime}), {context:g} tokens of context"
    )
    print(as_text(costs, needed))
    if acceptance is not None:
        best = best_draft_length(costs, acceptance)
        verdict = "a gain" if best.speedup > 1.0 else "still a loss"
        regret = "".join(f"; k={k} loses {100 * lost:.0f} %" for k, lost in best.regret)
        print(f"best: k={best.draft_length} at speedup {best.speedup:.2f}, {verdict}{regret}")
    return 0


def best_speedup(costs: RoundCosts, index: int) -> float:
    """The speedup when every draft token is accepted: the most this draft length can give."""
    round_s = costs.missed_s[index] + costs.catch_up_s[index]
    return float((costs.draft_lengths[index] + 1) * costs.plain_s / round_s)


def as_text(costs: RoundCosts, needed: tuple[float | None, ...]) -> str:
    """The table, and the sentence that follows from it."""
    rows = [
        [
            str(k),
            "no acceptance wins" if least is None else f"{least:.3f}",
            f"{missed_s / costs.plain_s:.2f}",
            f"{best_speedup(costs, i):.2f}",
        ]
        for i, (k, least, missed_s) in enumerate(
            zip(costs.draft_lengths, needed, costs.missed_s, strict=True)
        )
    ]
    text = table(["k", "break-even acceptance", "round / plain token", "best speedup"], rows)
    if all(least is None for least in needed):
        price = float(np.min(costs.missed_s / costs.plain_s / (np.array(costs.draft_lengths) + 1)))
        text += (
            "\nNo acceptance wins: even a draft that is always right costs "
            f"{price:.2f} plain tokens for each token it commits."
        )
    return text
