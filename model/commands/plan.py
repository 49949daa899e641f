"""`tokroof plan`: which settings of a trick would pay on a machine, and what they would need."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from model.commands import machine_options, plan_options
from model.commands import options as shared
from model.commands.diffusion_options import check_answer, check_diffusion, read_canvas
from model.commands.skip_options import share_of_layers
from model.commands.table import table
from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.sublayers import Half
from model.network.target import load_target
from model.planners.diffusion import plan_diffusion
from model.planners.factors_file import read_factors
from model.planners.layer_skip import plan_layer_skip
from model.planners.sublayers import plan_sublayers
from model.prediction.memory import check_fits
from model.progress.skip_curve import fit_skip_curve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `plan`."""
    plan_options.add_arguments(parser)


def execute(options: argparse.Namespace) -> int:
    """Plan and print."""
    plan_options.check(options)
    choice = machine_options.chosen_machine(options)
    machine = choice.profile.machine
    target = machine.as_run(load_target(options.target, options.format))
    context = shared.read_context(options, target, None)
    check_fits([target], machine, context=context)
    rows, text = PLANS[options.trick](options, target, machine, context)
    if options.json:
        document = {
            "target": target.architecture.name,
            "format": target.weight_format.name,
            "machine": machine.name,
            "runtime": machine.runtime,
            "context": context,
            "trick": options.trick,
            "plan": rows,
        }
        print(json.dumps(document, indent=2))
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(
        f"{options.trick} of {target.architecture.name} {target.weight_format.name} on "
        f"{machine.chip} ({machine.runtime}), {context:g} tokens of context"
    )
    print(text)
    return 0


def layer_skip(
    options: argparse.Namespace, target: Checkpoint, machine: Machine, context: float
) -> tuple[list[dict[str, Any]], str]:
    """Every share and draft length: what it needs, and what it gives at best."""
    curve = (
        None
        if options.measured is None
        else fit_skip_curve(plan_options.measured_points(options.measured))
    )

    def acceptance_at(fraction: float) -> float | None:
        if curve is None or fraction > max(curve.skip_fractions):
            return None
        return float(curve.acceptance(fraction))

    shares = plan_options.fractions(options)
    for share in shares:
        share_of_layers("--fractions", share, target.architecture)
    cells = plan_layer_skip(
        target,
        machine,
        context=context,
        fractions=[float(share) for share in shares],
        draft_lengths=plan_options.draft_lengths(options),
        acceptance_at=acceptance_at,
    )
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


def sublayers(
    options: argparse.Namespace, target: Checkpoint, machine: Machine, context: float
) -> tuple[list[dict[str, Any]], str]:
    """The set of sublayers with the most expected tokens per second."""
    if options.factors is None:
        right = "add --factors FILE"
        raise InputError("plan sublayers", "needs what each sublayer does to acceptance", right)
    plan = plan_sublayers(
        target,
        machine,
        context=context,
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


def diffusion(
    options: argparse.Namespace, target: Checkpoint, machine: Machine, context: float
) -> tuple[list[dict[str, Any]], str]:
    """Answer lengths by tokens per pass, against a rival that decodes plainly."""
    check_diffusion(target)
    rival = target
    if options.rival is not None or options.rival_format is not None:
        rival_format = options.format if options.rival_format is None else options.rival_format
        rival_name = options.target if options.rival is None else options.rival
        rival = machine.as_run(load_target(rival_name, rival_format))
        rival.check_context(context)
        check_fits([rival], machine, context=context)
    answers = plan_options.answer_lengths(options)
    check_answer("--answers", max(answers), target, context=context)
    cells = plan_diffusion(
        target,
        rival,
        machine,
        context=context,
        block_length=plan_options.block_length(options),
        answer_lengths=answers,
        committed_per_pass=plan_options.committed(options),
        cached=options.block_cache,
        canvas_tokens=read_canvas(options),
    )
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
        f"{rival.architecture.name} {rival.weight_format.name} decodes {rate:.1f} tok/s plainly; "
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


PLANS: Mapping[
    str,
    Callable[[argparse.Namespace, Checkpoint, Machine, float], tuple[list[dict[str, Any]], str]],
] = {"layer-skip": layer_skip, "sublayers": sublayers, "diffusion": diffusion}
"""The planner of each trick."""
