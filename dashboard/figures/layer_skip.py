"""Layer skip: which layers could a target leave out to draft for itself, and is it worth it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dashboard.answers import once
from dashboard.charts.layer_skip import skip_cells
from dashboard.figure import Figure, in_words
from dashboard.rows.plans import SkipRow, planned_for, skip_rows
from dashboard.selection import Selection
from model.commands.plan_options import add_arguments
from model.commands.planned import asked, skip_plan
from model.network.sublayers import middle_block

SIXTEENTHS = range(1, 11)
DRAFT_LENGTHS = "1,2,3,4,5,6,7,8"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SkipSettings:
    """What colours a cell, and acceptances that were measured, as `--measured` takes them."""

    shown: str = "needed_acceptance"
    measured: str = ""


@once
def layer_skip(selection: Selection, settings: SkipSettings) -> Figure:
    """The figure of a selection.

    Raises:
        InputError: as planning it does.
    """
    about = asked(selection.plan("layer-skip").options(add_arguments))
    # A share that rounds to no layer is none to skip.
    shares = [
        f"{part / 16:g}"
        for part in SIXTEENTHS
        if middle_block(about.target.architecture, part / 16)
    ]
    command = selection.plan(
        "layer-skip",
        ("--fractions", ",".join(shares)),
        ("--draft-lengths", DRAFT_LENGTHS),
        ("--measured", settings.measured),
    )
    rows = skip_rows(skip_plan(command.options(add_arguments), about))
    shown = settings.shown
    if shown == "speedup" and not settings.measured:
        shown = "speedup_at_most"
    return Figure(
        name="layer-skip",
        sentence=sentence(rows),
        chart=skip_cells(rows, shown),
        alternative=in_words(
            "Best cell by skipped layers", [in_short(rows, each) for each in percents(rows)]
        ),
        reading="A cell leaves out that share of the layers, in the middle of the network, to "
        "draft that many tokens. Grey: no acceptance wins, or none was measured.",
        rows=rows,
        command=command,
        where=planned_for(about),
        cautions=(*about.choice.note.splitlines(), *selection.beside_plans),
    )


def sentence(rows: Sequence[SkipRow]) -> str:
    """How many cells could win, what the easiest needs, and what measured acceptances give."""
    winnable = [row for row in rows if row.needed_acceptance is not None]
    if not winnable:
        return (
            "**No: skipping layers cannot pay here.** Not even drafts that are always right would "
            f"win; the best cell reaches {max(row.speedup_at_most for row in rows):.2f} times "
            "plain decoding."
        )
    easiest = min(winnable, key=lambda row: row.needed_acceptance or 0.0)
    most = max(rows, key=lambda row: row.speedup_at_most)
    said = (
        f"**Skipping layers could pay from an acceptance of {easiest.needed_acceptance:.2f} on,** "
        f"with {easiest.skipped_percent:g} % of them left out and a draft of "
        f"{_tokens(easiest.draft_length)}; {len(winnable)} of these {len(rows)} settings could. "
        f"With every guess right it would be at most {most.speedup_at_most:.2f} times plain "
        f"decoding ({most.skipped_percent:g} %, {_tokens(most.draft_length)}). The more layers "
        "are left out, the less often such a draft is right: that has to be measured."
    )
    known = [row for row in rows if row.speedup is not None]
    if known:
        best = max(known, key=lambda row: row.speedup or 0.0)
        winning = sum((row.speedup or 0.0) > 1.0 for row in known)
        said += (
            f" With the measured acceptances {winning} of {len(known)} cells win; the best gives "
            f"{best.speedup:.2f} times (skipping {best.skipped_percent:g} %, "
            f"k = {best.draft_length})."
        )
    return said


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


def percents(rows: Sequence[SkipRow]) -> list[float]:
    """The shares of skipped layers, once each."""
    return list(dict.fromkeys(row.skipped_percent for row in rows))


def in_short(rows: Sequence[SkipRow], percent: float) -> str:
    """What the best draft length of a share gives and needs, for who cannot see the chart."""
    best = max(
        (row for row in rows if row.skipped_percent == percent), key=lambda row: row.speedup_at_most
    )
    needs = "no acceptance wins"
    if best.needed_acceptance is not None:
        needs = f"wins from acceptance {best.needed_acceptance:.2f}"
    return f"{percent:g} % with k = {best.draft_length} at most {best.speedup_at_most:.2f}, {needs}"
