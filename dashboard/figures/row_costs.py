"""What does checking more tokens cost? A pass by its rows, in passes of one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from calibrate.commands.rows import OWN, PricedRows, add_arguments, priced_rows
from dashboard.answers import once
from dashboard.charts.row_costs import curves
from dashboard.command import Command, given
from dashboard.figure import Figure, in_words
from dashboard.rows.place import BASIS
from dashboard.rows.row_costs import cost_rows
from dashboard.selection import Selection
from model.prediction.row_curve import RowCurve

NAMED = 3
"""Cheap numbers of rows that the sentence names."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowSettings:
    """The formats and releases beside the sidebar's own, and the most rows that are shown."""

    formats: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    most: int = 32


@once
def row_costs(selection: Selection, settings: RowSettings) -> Figure:
    """The figure of a selection.

    Raises:
        InputError: a target, machine or release that is not known, or nothing that was measured.
    """
    command = of_command(selection, settings)
    priced = priced_rows(command.options(add_arguments))
    rows = cost_rows(priced)
    main = priced.series[0]
    return Figure(
        name="row-costs",
        sentence=sentence(priced),
        chart=curves(rows, main.curve.kernel_rows),
        alternative=in_words(
            "Cost of a pass in passes of one row",
            [
                f"{each.format} {each.runtime}: "
                + ", ".join(
                    f"{count} rows {each.curve.relative[count - 1]:.2f}"
                    for count in (1, 2, 4, 8, 16, 32, 64)
                    if count <= len(each.curve.relative)
                )
                for each in priced.series
            ],
        ),
        reading="Line: the model's pass, in passes of one row. Triangle: a row that costs far "
        "more than those before it. Vertical lines: another kernel takes over in the first curve. "
        "Hollow marks: measured; a kernel alone leaves out the other matrices, attention and what "
        "starts them, and the dotted line is the law of that kernel. Dashed grey: a pass that "
        "costs its rows, where checking tokens together saves nothing.",
        rows=rows,
        command=command,
        where=place(priced),
        cautions=cautions(priced),
    )


def of_command(selection: Selection, settings: RowSettings) -> Command:
    """`tokroof rows` for a selection."""
    formats = dict.fromkeys((selection.target_format, *settings.formats))
    runtimes = dict.fromkeys((selection.runtime or OWN, *settings.runtimes))
    return Command(
        name="rows",
        about=(selection.target,),
        settings=(
            ("--format", ",".join(formats)),
            ("--context", str(selection.context)),
            *given(
                ("--kv-format", selection.kv_format),
                ("--runtimes", ",".join(runtimes)),
                ("--most", settings.most),
                ("--batch", selection.batch if selection.batch > 1 else 0),
                ("--memory", selection.memory),
                ("--machine", selection.machine),
            ),
        ),
    )


def sentence(priced: PricedRows) -> str:
    """The cheap numbers of rows of the first curve, and the cliffs behind them."""
    main = priced.series[0]
    relative, cliffs = main.curve.relative, main.curve.cliffs
    if not cliffs:
        shown = [rows for rows in (2, 4, 8, 16) if rows <= len(relative)]
        costs = ", ".join(f"{rows} rows cost {relative[rows - 1]:.2f}" for rows in shown)
        return (
            f"**No row costs far more than those before it, up to {len(relative)} rows:** {costs} "
            f"times a pass of one. {of_drops(main.curve)}"
        ).strip()
    first, *others = cliffs[:NAMED]
    said = (
        f"**A pass of {_rows(first.row - 1)} {relative[first.row - 2]:.2f} times a pass of one; "
        f"the {ordinal(first.row)} row adds {first.adds:.2f},** as {first.reason}. "
        f"{of_drafts(first.row - 2)}"
    )
    if others:
        cheap = ", ".join(f"{each.row - 1} ({relative[each.row - 2]:.2f})" for each in others)
        said += f" The next numbers of rows before such a cliff: {cheap}."
    return f"{said} {of_drops(main.curve)}".strip()


def of_drafts(longest: int) -> str:
    """The draft that is checked just below the first cliff: k tokens take k + 1 rows."""
    if longest == 0:
        return "So no draft is cheap to check."
    drafted = "1 draft token is" if longest == 1 else f"{longest} draft tokens are"
    return f"So up to {drafted} cheap to check: with the token before, {longest + 1} rows."


def of_drops(curve: RowCurve) -> str:
    """Where a row more costs less, which no draft length should stop short of."""
    if not curve.drops:
        return ""
    row, relative = curve.drops[0], curve.relative
    return (
        f"A pass of {_rows(row)} {relative[row - 1]:.2f}, less than one of {row - 1} "
        f"({relative[row - 2]:.2f}): another kernel serves some of the matrices."
    )


def _rows(count: int) -> str:
    return f"{count} rows costs" if count > 1 else "1 row costs"


def ordinal(number: int) -> str:
    """A number as a place in a row.

    >>> [ordinal(n) for n in (1, 2, 3, 9, 11, 12, 22)]
    ['1st', '2nd', '3rd', '9th', '11th', '12th', '22nd']
    """
    teen = 10 <= number % 100 <= 20
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def place(priced: PricedRows) -> str:
    """What was priced and where, and what the constants rest on."""
    profile, main = priced.choice.profile, priced.series[0]
    beside = f", {priced.batch} sequences side by side" if priced.batch > 1 else ""
    return (
        f"{priced.target.architecture.name} {main.format}, on {profile.machine.chip} "
        f"({main.runtime}), {priced.context:,.0f} tokens of context{beside}; "
        f"{BASIS[profile.origin]}"
    )


def cautions(priced: PricedRows) -> tuple[str, ...]:
    """How the machine was chosen, what cannot be priced, and what is not in the picture."""
    profile = priced.choice.profile
    lines = [*priced.notes, *priced.refused]
    reshape_s = float(profile.machine.host.reshape_s)
    if reshape_s > 0.0:
        lines.append(
            f"not in the picture: every pass of several rows costs the host {1e3 * reshape_s:.1f} "
            "ms more, to plan attention for a context it has not met"
        )
    if priced.batch > 1:
        lines.append("what others measured is of single sequences, so none of it is shown")
    elif not priced.points:
        lines.append(
            f"nobody measured rows of these formats and releases on {profile.header.chip}: "
            "the lines are the model's alone"
        )
    return tuple(lines)
