"""Context and memory: how speed falls as the context grows, and what fits beside it."""

from __future__ import annotations

from dataclasses import replace

from dashboard.answers import once
from dashboard.charts.context import memory as memory_chart
from dashboard.charts.context import speeds
from dashboard.command import Command
from dashboard.figure import Figure, in_words
from dashboard.rows.context import memory_rows, speed_rows
from dashboard.rows.strategies import cautions, place
from dashboard.selection import Selection
from model.commands.context import Followed, OverContext, add_arguments, over_context
from model.units import GB

BEST = 3
"""Strategies that are followed beside plain decoding."""


def of_command(selection: Selection) -> Command:
    """`tokroof context` for a selection."""
    asked = selection.predict()
    return replace(asked, name="context", settings=(*asked.settings, ("--best", str(BEST))))


@once
def followed(selection: Selection) -> OverContext:
    """The strategies over contexts, for both figures.

    Raises:
        InputError: as predicting does; a target that does not fit is an answer.
    """
    return over_context(of_command(selection).options(add_arguments))


@once
def context_speed(selection: Selection) -> Figure:
    """The figure of speeds of a selection.

    Raises:
        InputError: as predicting does.
    """
    found = followed(selection)
    rows = speed_rows(found)
    contexts = [context for each in found.followed for context in each.contexts]
    return Figure(
        name="context-speed",
        sentence=of_speed(found),
        chart=speeds(rows, contexts, found.answer.context) if rows else None,
        alternative=in_words("Speed over the context", [_spoken(each) for each in found.followed]),
        reading="Line: estimate. Band: 90 % interval. A line ends where memory is full, or the "
        "network's limit is reached. Dashed: the context of the sidebar, for which the strategies "
        "and their draft lengths are chosen.",
        rows=rows,
        command=of_command(selection),
        where=place(found.answer),
        cautions=cautions(found.answer),
    )


@once
def context_memory(selection: Selection) -> Figure:
    """The figure of what lies in memory with the best strategy of a selection.

    Raises:
        InputError: as predicting does.
    """
    found = followed(selection)
    shown = with_most_residents(found)
    rows = memory_rows(shown)
    return Figure(
        name="context-memory",
        sentence=of_memory(found, shown),
        chart=memory_chart(rows, shown.longest if shown.full else None, found.answer.context),
        alternative=in_words(
            "Memory over the context",
            [
                f"{shown.label} at {context} tokens {each.memory.working_set_bytes / GB:.1f} GB"
                for context, each in zip(shown.contexts, shown.memory, strict=True)
            ],
        ),
        reading="Stack: what must stay in memory. Thick line: what the GPU may keep resident, as "
        "macOS recommends; beyond it weights are swapped, and no speed can be told. Dotted: the "
        "context at which it is reached.",
        rows=rows,
        command=of_command(selection),
    )


def with_most_residents(found: OverContext) -> Followed:
    """The strategy that needs most memory: whatever fits beside it fits with the others."""
    return max(found.followed, key=lambda each: each.memory[0].memory.working_set_bytes)


def of_speed(found: OverContext) -> str:
    """How plain decoding falls over the context, and where the strategies stop to pay."""
    said: list[str] = []
    for each in found.followed:
        told = [
            (context, prediction)
            for context, prediction in zip(each.contexts, each.predictions, strict=True)
            if prediction.tokens_per_s is not None
        ]
        if not told:
            said.append(f"{capital(each.label)} {each.memory[0].memory.reason}.")
            continue
        (first, fast), (last, slow) = told[0], told[-1]
        numbers = (
            f"{capital(each.label)} falls from {fast.tokens_per_s:.1f} tok/s at {first:,} tokens "
            f"of context to {slow.tokens_per_s:.1f} at {last:,}"
        )
        if each is found.followed[0]:
            said.append(f"**{numbers}.**")
            continue
        lost = next((c for c, p in told if p.speedup is not None and p.speedup < 1.0), None)
        ahead = "" if lost is None else f"; at {lost:,} it is slower than plain decoding"
        said.append(f"{numbers}{ahead}.")
    return " ".join(said)


def capital(text: str) -> str:
    """A text that begins a sentence."""
    return text[:1].upper() + text[1:]


def of_memory(found: OverContext, shown: Followed) -> str:
    """How many tokens fit, with the strategy that needs most and with plain decoding."""
    here = shown.memory[0].memory
    if shown.longest is None:
        said = f"**{shown.label} does not fit:** {_short(shown)}."
    elif shown.full:
        said = (
            f"**{shown.longest:,} tokens of context fit with {shown.label},** then the "
            f"{here.limit_bytes / GB:.1f} GB are full."
        )
    else:
        said = (
            f"**All {shown.longest:,} tokens that the network can hold fit with {shown.label},** "
            f"in {_needed_gb(shown):.1f} of {here.limit_bytes / GB:.1f} GB."
        )
    plain = found.followed[0]
    if shown is plain or plain.longest is None or plain.longest == shown.longest:
        return said
    return f"{said} Plain decoding has room for {plain.longest:,}."


def _short(shown: Followed) -> str:
    memory = shown.memory[0].memory
    need, limit = memory.working_set_bytes / GB, memory.limit_bytes / GB
    return f"{shown.contexts[0]:,} tokens of context need {need:.1f} GB of {limit:.1f} GB"


def _needed_gb(shown: Followed) -> float:
    fitting = [each.memory.working_set_bytes for each in shown.memory if each.memory.fits]
    return max(fitting) / GB


def _spoken(each: Followed) -> str:
    told = [
        f"{prediction.tokens_per_s:.1f} tok/s at {context} tokens"
        for context, prediction in zip(each.contexts, each.predictions, strict=True)
        if prediction.tokens_per_s is not None
    ]
    return f"{each.label} {', '.join(told) or 'does not fit'}"
