"""What `plan` computes, before anybody says it: for the command line and for charts."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import final

from model.commands import machine_options, plan_options
from model.commands import options as shared
from model.commands.diffusion_options import check_answer, check_diffusion, read_canvas
from model.commands.machine_options import ChosenMachine
from model.commands.skip_options import share_of_layers
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.target import load_target
from model.planners.diffusion import DiffusionCell, plan_diffusion
from model.planners.layer_skip import SkipCell, plan_layer_skip
from model.prediction.memory import check_fits
from model.progress.skip_curve import fit_skip_curve


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What every plan is asked about: a machine, and a target that fits into it."""

    choice: ChosenMachine
    target: Checkpoint
    context: float

    @property
    def machine(self) -> Machine:
        """The machine at its fitted constants."""
        return self.choice.profile.machine


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionPlan:
    """Answer lengths by tokens per pass, and the rival that decodes plainly."""

    rival: Checkpoint
    cells: tuple[DiffusionCell, ...]


def asked(options: argparse.Namespace) -> Asked:
    """What the options of `plan` ask about.

    Raises:
        InputError: a trick, model or machine that is not known, a setting of another trick, or a
            target that does not fit.
    """
    plan_options.check(options)
    choice = machine_options.chosen_machine(options)
    machine = choice.profile.machine
    target = machine.as_run(load_target(options.target, options.format))
    context = shared.read_context(options, target, None)
    check_fits([target], machine, context=context)
    return Asked(choice=choice, target=target, context=context)


def skip_plan(options: argparse.Namespace, about: Asked) -> tuple[SkipCell, ...]:
    """Every share and draft length of layer skipping: what it needs, and gives at best.

    Raises:
        InputError: a share, a draft length or a measured point that cannot be.
    """
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
        share_of_layers("--fractions", share, about.target.architecture)
    return plan_layer_skip(
        about.target,
        about.machine,
        context=about.context,
        fractions=[float(share) for share in shares],
        draft_lengths=plan_options.draft_lengths(options),
        acceptance_at=acceptance_at,
    )


def diffusion_plan(options: argparse.Namespace, about: Asked) -> DiffusionPlan:
    """Answer lengths by tokens per pass of a diffusion model, against its rival.

    Raises:
        InputError: no diffusion model, a rival that does not fit, or lengths that cannot be.
    """
    target, machine, context = about.target, about.machine, about.context
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
    return DiffusionPlan(rival=rival, cells=cells)
