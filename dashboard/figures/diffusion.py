"""Diffusion: from which answer on does denoising blocks beat writing token by token?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import final

from dashboard.answers import once
from dashboard.charts.diffusion import answer_speeds
from dashboard.figure import Figure, in_words, literally
from dashboard.rows.plans import DiffusionRow, diffusion_rows, planned_for
from dashboard.selection import Selection
from model.catalog import architecture_names
from model.commands.diffusion_options import check_diffusion
from model.commands.plan_options import BLOCK, add_arguments
from model.commands.planned import asked, diffusion_plan
from model.errors import InputError
from model.network.target import load_target

ANSWERS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
COMMITTED = (1.0, 2.0, 4.4, 8.0, 16.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionSettings:
    """The tokens of a block, whether what was written is cached, and who decodes plainly.

    An empty rival is a network of the target's own shape.
    """

    block: int = int(BLOCK)
    cached: bool = False
    rival: str = ""


@once
def denoises(selection: Selection) -> bool:
    """Whether the target is a diffusion model.

    Raises:
        InputError: the target is not known.
    """
    target = load_target(selection.target, selection.target_format)
    try:
        check_diffusion(target)
    except InputError:
        return False
    return True


@cache
def denoisers() -> tuple[str, ...]:
    """The shipped diffusion models."""
    return tuple(name for name in architecture_names() if denoises(Selection(target=name)))


@once
def diffusion(selection: Selection, settings: DiffusionSettings) -> Figure:
    """The figure of a selection.

    Raises:
        InputError: as planning it does; a target that is no diffusion model is one reason.
    """
    about = asked(selection.plan("diffusion").options(add_arguments))
    limit = about.target.architecture.context_limit
    room = float("inf") if limit is None else limit - about.context
    answers = [length for length in ANSWERS if length <= max(room, min(ANSWERS))]
    command = selection.plan(
        "diffusion",
        ("--block", settings.block),
        ("--answers", ",".join(map(str, answers))),
        ("--committed", ",".join(f"{each:g}" for each in COMMITTED if each <= settings.block)),
        ("--rival", settings.rival),
    )
    if settings.cached:
        command = replace(command, switches=("--block-cache",))
    plan = diffusion_plan(command.options(add_arguments), about)
    rows = diffusion_rows(plan.cells)
    rival = plan.rival.label
    return Figure(
        name="diffusion",
        sentence=sentence(rows, rival, settings.block),
        chart=answer_speeds(rows),
        alternative=in_words(
            "Speed of the longest answer, by tokens fixed in a pass",
            [in_short(row) for row in longest(rows)],
        ),
        reading="A line is how many tokens of a block every pass fixes. A short answer pays for "
        "its whole block. Dashed: the rival, which writes one token a pass. How many tokens a pass "
        "can fix without spoiling the answer is not the machine's to say.",
        rows=rows,
        command=command,
        where=planned_for(about),
        cautions=(*about.choice.note.splitlines(), *selection.beside_plans),
    )


def sentence(rows: Sequence[DiffusionRow], rival: str, block: int) -> str:
    """Whether any answer is faster than the rival's, from where on, and what a tie needs."""
    first, fastest = rows[0], max(rows, key=lambda row: row.tokens_per_s)
    plain = f"{literally(rival)} decoding plainly ({first.rival_tokens_per_s:.1f} tok/s)"
    winning = [row for row in rows if row.speedup > 1.0]
    tie = min(row.needed_per_pass for row in rows)
    if not winning:
        return (
            f"**No answer here is faster than {plain}.** The best is {fastest.tokens_per_s:.1f} "
            f"tok/s, at {fastest.answer_tokens} tokens and {fastest.committed_per_pass:g} fixed in "
            f"a pass; a tie takes {tie:.1f} useful tokens in every pass"
            + (f", more than the {block} of a block." if tie > block else ", or more.")
        )
    least = min(winning, key=lambda row: (row.committed_per_pass, row.answer_tokens))
    return (
        f"**It beats {plain} from {least.committed_per_pass:g} tokens fixed in a pass and answers "
        f"of {least.answer_tokens} tokens on.** The best is {fastest.tokens_per_s:.1f} tok/s, "
        f"{fastest.speedup:.2f} times as fast, at {fastest.answer_tokens} tokens and "
        f"{fastest.committed_per_pass:g} fixed in a pass."
    )


def longest(rows: Sequence[DiffusionRow]) -> list[DiffusionRow]:
    """The rows of the longest answer."""
    most = max(row.answer_tokens for row in rows)
    return [row for row in rows if row.answer_tokens == most]


def in_short(row: DiffusionRow) -> str:
    """A row for who cannot see the chart."""
    return (
        f"{row.committed_per_pass:g} fixed {row.tokens_per_s:.1f} tok/s, {row.speedup:.2f} times "
        "the rival"
    )
