"""`tokroof plan`: which settings of a trick would pay on a machine, and what they would need."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from model.commands import plan_options
from model.commands.heading import about_json, about_text
from model.commands.planned import Asked, asked, diffusion_plan, skip_plan
from model.commands.table import table
from model.errors import InputError
from model.network.sublayers import Half
from model.planners.factors_file import read_factors
from model.planners.sublayers import plan_sublayers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `plan`."""
    plan_options.add_arguments(parser)


def execute(options: argparse.Namespace) -> int:
    """Plan and print."""
    about = asked(options)
    choice, target, machine, context = about.choice, about.target, about.machine, about.context
    rows, text = PLANS[options.trick](options, about)
    if options.json:
        document = {
            **about_json(target, machine),
            "context": context,
            "trick": options.trick,
            "plan": rows,
        }
        print(json.dumps(document, indent=2))
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(f"{options.trick} of {about_text(target, machine)}, {context:g} tokens of context")
    print(text)
    return 0


def layer_skip(options: argparse.Namespace, about: Asked) -> tuple[list[dict[str, Any]], str]:
    """Every share and draft length: what it needs, and what it gives at best."""
    cells = skip_plan(options, about)
    header = ["skipped", "k", "acceptance needed", "speedup at most", "acceptance", "speedup"]
    lines = [
        [
            f"{cell.skip_fraction:g}",
            str(cell.draft_length),
            "none wins" if cell.needed_acceptance is None else f"{cell.needed_acceptance:.3f}",
            f"{cell.speedup_at_most:.2f}",
            "-" if cell.acceptance is None else f"{cell.acceptance:.3f}",
            "-" if cell.speedup is None else f"{cell.speedup:.2f}",
        ]
        for cell in cells
    ]
    winnable = [cell for cell in cells if cell.needed_acceptance is not None]
    verdict = f"{len(winnable)} of {len(cells)} cells could win"
    if winnable:
        easiest = min(winnable, key=lambda cell: cell.needed_acceptance or 0.0)
        verdict += (
            f"; the least acceptance, {easiest.needed_acceptance:.2f}, is needed at "
            f"{easiest.skip_fraction:g} and k={easiest.draft_length}"
        )
    known = [cell.speedup for cell in cells if cell.speedup is not None]
    if known:
        winning = sum(speedup > 1.0 for speedup in known)
        verdict += f"; with the measured acceptances {winning} do, the best {max(known):.2f}"
    return [asdict(cell) for cell in cells], f"{table(header, lines)}\n{verdict}"


def sublayers(options: argparse.Namespace, about: Asked) -> tuple[list[dict[str, Any]], str]:
    """The set of sublayers with the most expected tokens per second."""
    if options.factors is None:
        right = "add --factors FILE"
        raise InputError("plan sublayers", "needs what each sublayer does to acceptance", right)
    plan = plan_sublayers(
        about.target,
        about.machine,
        context=about.context,
        acceptance_factors=read_factors(Path(options.factors)),
        draft_lengths=plan_options.draft_lengths(options),
    )
    skipped = {
        half.value: sorted(each.layer for each in plan.skipped if each.half is half)
        for half in Half
    }
    row = {
        "skipped": skipped,
        "draft_length": plan.draft_length,
        "acceptance": plan.acceptance,
        "tokens_per_s": plan.tokens_per_s,
        "plain_tokens_per_s": plan.plain_tokens_per_s,
        "speedup": plan.speedup,
    }
    lines = [f"skip {half} of layers {listed(layers)}" for half, layers in skipped.items()]
    verdict = (
        f"k={plan.draft_length}, expected acceptance {plan.acceptance:.3f}: "
        f"{plan.tokens_per_s:.1f} tok/s against {plan.plain_tokens_per_s:.1f} plainly, "
        f"a speedup of {plan.speedup:.2f}"
    )
    return [row], "\n".join([*lines, verdict])


def diffusion(options: argparse.Namespace, about: Asked) -> tuple[list[dict[str, Any]], str]:
    """Answer lengths by tokens per pass, against a rival that decodes plainly."""
    plan = diffusion_plan(options, about)
    rival, cells = plan.rival, plan.cells
    header = ["committed", "answer", "tok/pass", "passes", "tok/s", "tok/pass to tie", "speedup"]
    lines = [
        [
            f"{cell.committed_per_pass:g}",
            str(cell.answer_tokens),
            f"{cell.tokens_per_pass:.2f}",
            f"{cell.passes:.1f}",
            f"{cell.tokens_per_s:.2f}",
            f"{cell.needed_per_pass:.1f}",
            f"{cell.tokens_per_s / cell.rival_tokens_per_s:.3g}",
        ]
        for cell in cells
    ]
    rate = cells[0].rival_tokens_per_s
    verdict = (
        f"{rival.label} decodes {rate:.1f} tok/s plainly; "
        "these are estimates, and `tokroof predict` gives their intervals"
    )
    return [asdict(cell) for cell in cells], f"{table(header, lines)}\n{verdict}"


def listed(layers: list[int]) -> str:
    """Layer numbers with runs shortened.

    >>> listed([3, 4, 5, 9])
    '3-5, 9'
    """
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ", ".join(words) or "none"


PLANS: Mapping[str, Callable[[argparse.Namespace, Asked], tuple[list[dict[str, Any]], str]]] = {
    "layer-skip": layer_skip,
    "sublayers": sublayers,
    "diffusion": diffusion,
}
"""The planner of each trick."""
