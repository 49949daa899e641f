"""`tokroof roofline`: the passes of every strategy under the roofs of their kernels."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import final

from model.commands import predict
from model.commands.answer import Answer, answer
from model.commands.heading import about_json, about_text
from model.commands.prediction_text import label
from model.commands.table import table
from model.prediction.roofline import PassPoint, Roof, pass_point, roofs
from model.strategies.base import AbstractStrategy
from model.strategies.block_diffusion import BlockDiffusion
from model.strategies.drafted import AbstractDrafted
from model.strategies.replacement import Replacement
from model.units import GB

TERA = 1e12
MOST_ROWS = 64
"""Rows up to which the target's own pass is followed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `roofline`: those of `predict`."""
    predict.add_arguments(parser)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyPoint:
    """A strategy's pass of the target (of another network where it runs that instead)."""

    label: str
    strategy: str
    point: PassPoint


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Roofline:
    """The roofs for the target's matrices, its pass row by row, and the strategies' passes."""

    answer: Answer
    roofs: tuple[Roof, ...]
    path: tuple[PassPoint, ...]
    points: tuple[StrategyPoint, ...]


def roofline(options: argparse.Namespace) -> Roofline:
    """Place the strategies that the options ask for.

    Raises:
        InputError: as `predict` does, or a target that does not fit into the machine.
    """
    found = answer(options)
    found.check_fits()
    machine, context = found.choice.profile.machine, found.context
    placed = [
        StrategyPoint(
            label=label(prediction),
            strategy=prediction.strategy,
            point=strategy_point(each.strategy, found),
        )
        for each, prediction in zip(found.answerable, found.predictions, strict=True)
    ]
    return Roofline(
        answer=found,
        roofs=roofs(found.target, machine),
        path=tuple(
            pass_point(found.target, machine, rows=rows, context=context)
            for rows in range(1, MOST_ROWS + 1)
        ),
        points=tuple(placed),
    )


def strategy_point(strategy: AbstractStrategy, found: Answer) -> PassPoint:
    """The pass that commits a strategy's tokens: draft passes are not in it."""
    machine, context, target = found.choice.profile.machine, found.context, found.target
    if isinstance(strategy, Replacement):
        return pass_point(strategy.other, machine, rows=1, context=context)
    if isinstance(strategy, BlockDiffusion):
        rows = strategy.rows if strategy.cached else strategy.rows + round(context)
        past = context if strategy.cached else float(rows)
        return pass_point(target, machine, rows=rows, context=past)
    rows = strategy.draft_length + 1 if isinstance(strategy, AbstractDrafted) else 1
    return pass_point(target, machine, rows=rows, context=context, sequences=strategy.batch)


def execute(options: argparse.Namespace) -> int:
    """Place and print."""
    found = roofline(options)
    target, choice = found.answer.target, found.answer.choice
    machine = choice.profile.machine
    if options.json:
        document = {
            **about_json(target, machine),
            "context": found.answer.context,
            "roofs": [asdict(each) for each in found.roofs],
            "path": [asdict(each) for each in found.path],
            "points": [
                {"label": each.label, "strategy": each.strategy, **asdict(each.point)}
                for each in found.points
            ],
        }
        print(json.dumps(document, indent=2))
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(f"{about_text(target, machine)}, {found.answer.context:g} tokens of context")
    print(roofs_text(found.roofs))
    print(points_text(found.points))
    return 0


def roofs_text(found: tuple[Roof, ...]) -> str:
    """The roofs as a table."""
    cells = [
        [
            rows_text(each),
            "-" if each.bandwidth_bytes_per_s is None else f"{each.bandwidth_bytes_per_s / GB:.1f}",
            "-" if each.flops_per_s is None else f"{each.flops_per_s / TERA:.2f}",
        ]
        for each in found
    ]
    return table(["kernel for rows", "GB/s", "TFLOP/s"], cells)


def rows_text(roof: Roof) -> str:
    """The rows that a kernel serves.

    >>> rows_text(Roof(first_row=13, last_row=None, bandwidth_bytes_per_s=None, flops_per_s=None))
    '13 and more'
    """
    if roof.last_row is None:
        return f"{roof.first_row} and more"
    if roof.last_row == roof.first_row:
        return f"{roof.first_row}"
    return f"{roof.first_row} to {roof.last_row}"


def points_text(points: tuple[StrategyPoint, ...]) -> str:
    """The strategies' passes as a table."""
    cells = [
        [
            each.label,
            str(each.point.rows),
            f"{each.point.intensity:.2f}",
            f"{each.point.attained_flops_per_s / TERA:.3f}",
            "-"
            if each.point.roof_flops_per_s is None
            else f"{each.point.roof_flops_per_s / TERA:.3f}",
            each.point.under.value,
        ]
        for each in points
    ]
    header = ["strategy", "rows", "FLOP/byte", "TFLOP/s", "roof TFLOP/s", "roof of"]
    return table(header, cells)
