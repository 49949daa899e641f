"""Break-even: the acceptance that a draft needs, by its length, and the one that is had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from dashboard.answers import once
from dashboard.charts.break_even import speedups
from dashboard.command import Command, given
from dashboard.drafts import check_draft
from dashboard.figure import Figure, in_words
from dashboard.rows.break_even import bands, length_rows, needed_text, speedup_cells
from dashboard.rows.place import placed
from dashboard.selection import Selection
from model.commands.break_even import add_arguments
from model.commands.break_even_answer import Solved, solve
from model.commands.break_even_progress import Have
from model.commands.prediction_text import span
from model.errors import InputError

STEP = "0.02"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEvenSettings:
    """The longest draft that is shown, and how far the acceptance may be off."""

    longest: int = 16
    spread: float = 0.0


@once
def break_even(selection: Selection, settings: BreakEvenSettings) -> Figure:
    """The figure of a selection.

    Raises:
        InputError: no draft, one that cannot draft here, or one that does not fit.
    """
    check_draft(selection)
    command, solved, caution = asked(selection, settings)
    lengths, cells = length_rows(solved), speedup_cells(solved)
    return Figure(
        name="break-even",
        sentence=sentence(solved),
        chart=speedups(bands(cells), lengths),
        alternative=in_words(
            "Acceptance needed, by draft length", [row.in_words for row in lengths]
        ),
        reading="Purple loses against plain decoding, green wins, grey is a tie (within 3 %). "
        "Thick line: the acceptance needed. Thin lines: its 90 % interval, since the machine's "
        "constants have errors. Dot: the acceptance you have, with its range. A draft length that "
        "no acceptance makes win has no thick line.",
        rows=cells,
        command=command,
        where=place(solved),
        cautions=tuple(line for line in (*solved.choice.note.splitlines(), *caution) if line),
    )


def asked(
    selection: Selection, settings: BreakEvenSettings
) -> tuple[Command, Solved, tuple[str, ...]]:
    """The call, its answer, and why published acceptances do not stand in, where they cannot."""
    command = of_command(selection, settings, selection.task)
    try:
        return command, solve(command.options(add_arguments)), ()
    except InputError as error:
        if not selection.task:
            raise
        alone = of_command(selection, settings, "")
        solved = solve(alone.options(add_arguments))  # what else is wrong is refused again
        return alone, solved, (str(error),)


def of_command(selection: Selection, settings: BreakEvenSettings, task: str) -> Command:
    """`tokroof break-even` for a selection."""
    acceptance = "" if selection.task else selection.acceptance
    spread = settings.spread if acceptance else 0.0
    return Command(
        name="break-even",
        about=(selection.target,),
        settings=(
            *selection.of_target,
            *selection.of_draft,
            *selection.of_cache,
            *given(
                ("--longest", settings.longest),
                ("--map", STEP),
                ("--acceptance", acceptance),
                ("--spread", f"{spread:g}" if spread else ""),
                ("--task", task),
            ),
            *selection.on_machine,
        ),
    )


def sentence(solved: Solved) -> str:
    """What is had and what is needed, or what is needed alone."""
    needs = [
        (row.break_even_acceptance, row.draft_length)
        for row in solved.rows
        if row.break_even_acceptance is not None
    ]
    most = max(solved.rows, key=lambda row: row.best_speedup)
    name = solved.draft.architecture.name
    if not needs:
        return (
            f"**No acceptance makes {name} pay as a draft:** even guesses that are always right "
            f"cost {1.0 / most.best_speedup:.2f} plain tokens for each token they give."
        )
    needed, length = min(needs)
    row = next(each for each in solved.rows if each.draft_length == length)
    least = needed_text(needed, row.needed_low, row.needed_high)
    reach = (
        f"With every guess right it would be {most.best_speedup:.2f} times as fast "
        f"(k = {most.draft_length})."
    )
    if not solved.have:
        return (
            f"**You need an acceptance of {least}** for {name} to pay as a draft, with k = "
            f"{length} draft {'token' if length == 1 else 'tokens'} a round. {reach} "
            "Set the acceptance that you have to see where you stand."
        )
    return (
        f"{of_have(solved)} The least that any draft length needs is {needed:.2f} (k = {length}). "
        f"{reach}"
    )


def of_have(solved: Solved) -> str:
    """What is had against what is needed, at the draft length that makes most of it."""
    best, predicted = solved.best, solved.predicted
    if best is None or predicted is None:
        raise AssertionError("nobody said what is had")
    index = solved.costs.draft_lengths.index(best.draft_length)
    had, row = solved.have[index], solved.rows[index]
    needed, low, high = row.break_even_acceptance, row.needed_low, row.needed_high
    need = "no acceptance wins"
    if needed is not None:
        need = f"you need {needed_text(needed, low, high)}"
    said = f"**You have {in_range(had)}, {need}** at the best draft length, k = {had.draft_length}"
    said += f": {best.speedup:.2f} times plain decoding"
    said += f" (90 % interval {span(predicted.speedup_interval_90, 2)}, {predicted.verdict})."
    if needed is not None and had.low <= (high or 1.0) and had.high >= (low or 0.0):
        said += " What you have and what you need overlap, so it may win or lose."
    if had.pairs:
        pairs = "one published pair" if had.pairs == 1 else f"{had.pairs} published pairs"
        said += f" What you have is taken from {pairs}."
    return said


def in_range(had: Have) -> str:
    """An acceptance with its range."""
    if had.low == had.high:
        return f"{had.acceptance:.2f}"
    below, above = had.acceptance - had.low, had.high - had.acceptance
    if abs(below - above) < 0.005:
        return f"{had.acceptance:.2f} ± {above:.2f}"
    return f"{had.acceptance:.2f} ({had.low:.2f} to {had.high:.2f})"


def place(solved: Solved) -> str:
    """What was solved for and where, and what the constants rest on."""
    profile = solved.choice.profile
    return placed(profile, solved.target, solved.context, draft=solved.draft)
