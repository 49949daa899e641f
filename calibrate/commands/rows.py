"""`tokroof rows`: what a pass of more rows costs, by weight format and MLX release.

The curve is the model's; beside it stands what was measured on the machine, or what others
published of its chip.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import final

from calibrate.row_points import RowPoint, row_points, same_series
from model.commands import network_options
from model.commands import options as shared
from model.commands.break_even_answer import read_batch
from model.commands.machine_options import with_memory
from model.commands.table import table
from model.errors import InputError
from model.machine.kernels.runtime_change import as_runtime
from model.machine.profile import Profile
from model.machine.profile_store import Choice, choose_profile
from model.network.checkpoint import Checkpoint
from model.network.target import load_target
from model.prediction.memory import feasibility
from model.prediction.row_curve import RowCurve, row_curve

MOST_ROWS = 512
DEFAULT_ROWS = 32
OWN = "own"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `rows`."""
    parser.add_argument("target", metavar="TARGET", help="a name from `tokroof models`, or a file")
    parser.add_argument(
        "--format", metavar="F[,F...]", help="weight formats, the main one first (default: own)"
    )
    parser.add_argument(
        "--runtimes",
        metavar="R[,R...]",
        help=f"MLX releases, e.g. mlx-0.31; {OWN!r} is the machine's (default: {OWN})",
    )
    parser.add_argument(
        "--most", metavar="ROWS", default=str(DEFAULT_ROWS), help="rows up to (default: 32)"
    )
    parser.add_argument(
        "--context",
        metavar="TOKENS",
        default=str(shared.DEFAULT_CONTEXT),
        help=f"tokens in the cache (default: {shared.DEFAULT_CONTEXT})",
    )
    parser.add_argument(
        "--batch", metavar="B", help="sequences side by side, each with these rows (default: 1)"
    )
    network_options.add_arguments(parser)
    parser.add_argument(
        "--memory", metavar="GB", help="say what fits into another memory size of the same chip"
    )
    shared.add_machine(parser)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The curve of one weight format under one release."""

    format: str
    runtime: str
    curve: RowCurve


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PricedRows:
    """The curves that were asked for, the main one first, and what was measured of them.

    `refused` says which formats or releases cannot be priced here, and why. A curve is what a
    pass would cost whether or not it fits; `notes` say which do not, and what a memory size rests
    on. Measured points are of single sequences, so a batch has none.
    """

    choice: Choice
    target: Checkpoint
    context: float
    batch: int
    series: tuple[Series, ...]
    points: tuple[RowPoint, ...]
    refused: tuple[str, ...]
    notes: tuple[str, ...]


def priced_rows(options: argparse.Namespace) -> PricedRows:
    """Price the rows that the options of `rows` ask about.

    Raises:
        InputError: an option that is wrong, or nothing that can be priced.
    """
    choice = choose_profile(options.machine)
    profile, notes = choice.profile, [*choice.note.splitlines()]
    if options.memory is not None:
        profile, note = with_memory(profile, options.memory)
        notes += [note] if note else []
    batch = read_batch(options)
    most = shared.whole_number("--most", options.most, least=2, most=MOST_ROWS)
    formats = [None] if options.format is None else options.format.split(",")
    runtimes = [OWN] if options.runtimes is None else options.runtimes.split(",")
    targets = [_target(options, profile, each) for each in formats]
    context = shared.read_context(options, targets[0], None)
    series: list[Series] = []
    refused: list[InputError] = []
    for runtime, target in product(runtimes, targets):
        try:
            here = profile if runtime == OWN else as_runtime(profile, runtime)
            curve = row_curve(
                target, here.machine, context=context, most_rows=most, sequences=batch
            )
        except InputError as error:
            refused.append(error)
            continue
        name = target.weight_format.name.removesuffix("-s32")
        series.append(Series(format=name, runtime=here.header.runtime, curve=curve))
    if not series:
        raise refused[0]
    measured = row_points(profile, targets[0], most_rows=most) if batch == 1 else ()
    notes += unfit(targets, profile, context=context, batch=batch)
    return PricedRows(
        choice=choice,
        target=targets[0],
        context=context,
        batch=batch,
        series=tuple(dict.fromkeys(series)),
        points=tuple(each for each in measured if any(is_of(each, of) for of in series)),
        refused=tuple(dict.fromkeys(map(str, refused))),
        notes=tuple(notes),
    )


def unfit(
    targets: Sequence[Checkpoint], profile: Profile, *, context: float, batch: int
) -> list[str]:
    """What of the targets does not fit into the machine, and by how much."""
    machine = profile.machine
    needed = {each: feasibility([(each, batch)], machine, context=context) for each in targets}
    return [
        f"{each.label} {memory.reason}; its curve is of a machine with room for it"
        for each, memory in needed.items()
        if not memory.fits
    ]


def _target(options: argparse.Namespace, profile: Profile, stored_as: str | None) -> Checkpoint:
    target = profile.machine.as_run(load_target(options.target, stored_as))
    return network_options.with_settings(options, target)


def is_of(point: RowPoint, series: Series) -> bool:
    """Whether a measured point is of a curve's format and release."""
    return point.format == series.format and same_series(point.runtime, series.runtime)


def execute(options: argparse.Namespace) -> int:
    """Price and print."""
    found = priced_rows(options)
    profile = found.choice.profile
    if options.json:
        document = {
            "target": found.target.architecture.name,
            "machine": profile.header.name,
            "context": found.context,
            "batch": found.batch,
            "curves": [
                {
                    "format": each.format,
                    "runtime": each.runtime,
                    "rows": [
                        {"rows": rows, "seconds": seconds, "relative": relative}
                        for rows, (seconds, relative) in enumerate(
                            zip(each.curve.seconds, each.curve.relative, strict=True), start=1
                        )
                    ],
                    "kernel_rows": each.curve.kernel_rows,
                    "cliffs": [asdict(cliff) for cliff in each.curve.cliffs],
                    "cheapest": each.curve.cheapest,
                }
                for each in found.series
            ],
            "measured": [asdict(point) for point in found.points],
            "refused": found.refused,
            "notes": found.notes,
        }
        print(json.dumps(document, indent=2))
        return 0
    for note in (*found.notes, *found.refused):
        print(note, file=sys.stderr)
    of_batch = f" of each of {found.batch} sequences" if found.batch > 1 else ""
    print(
        f"A pass of {found.target.architecture.name} on {profile.header.chip}, "
        f"{found.context:g} tokens of context, in passes of one row{of_batch}"
    )
    header = ["rows", *(f"{each.format} {each.runtime}" for each in found.series)]
    columns = [each.curve.relative for each in found.series]
    print(table(header, [[str(r), *(f"{c:.2f}" for c in row)] for r, row in enumerated(columns)]))
    for each in found.series:
        print(f"{each.format} {each.runtime}: {in_words(each.curve)}")
    print(f"{len(found.points)} measured points of these (--json lists them)")
    return 0


def enumerated(columns: list[tuple[float, ...]]) -> list[tuple[int, tuple[float, ...]]]:
    """Rows of the table with their numbers, from 1."""
    return list(enumerate(zip(*columns, strict=True), start=1))


def in_words(curve: RowCurve) -> str:
    """The cheap numbers of rows and the cliffs behind them; without any, what a row adds.

    >>> in_words(RowCurve(seconds=(1.0, 1.5, 2.0), kernel_rows=(), cliffs=()))
    'no cliff up to 3 rows: 2 rows cost 1.50, 3 rows cost 2.00'
    """
    relative = curve.relative
    if not curve.cliffs:
        shown = dict.fromkeys(rows for rows in (2, 4, 8, len(relative)) if rows <= len(relative))
        costs = ", ".join(f"{rows} rows cost {relative[rows - 1]:.2f}" for rows in shown)
        return f"no cliff up to {len(relative)} rows: {costs}"
    said = [
        f"{cliff.row - 1} rows cost {relative[cliff.row - 2]:.2f}, row {cliff.row} "
        f"{cliff.adds:.2f} more ({cliff.reason})"
        for cliff in curve.cliffs
    ]
    return "; ".join(said)
