"""The formats that can be imported, told apart by what a text holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from calibrate.imports import (
    batched_bench,
    llama_bench,
    mlx_benchmark,
    mlx_chronos,
    mlx_generate,
    spec_bench,
)
from calibrate.imports.blanks import Given, fill
from calibrate.imports.found import Found, run_of
from calibrate.imports.source import Source
from calibrate.imports.spec_bench import with_baselines
from calibrate.published.run_row import PublishedRun
from model.errors import InputError, unknown_name


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A tool's output: `recognises` gives the line that shows it or 0, `read` what is in it."""

    name: str
    recognises: Callable[[str], int]
    read: Callable[[str, str], Found]


FORMATS = {
    module.NAME: Format(name=module.NAME, recognises=module.recognises, read=module.read)
    for module in (
        llama_bench,
        batched_bench,
        mlx_benchmark,
        mlx_generate,
        mlx_chronos,
        spec_bench,
    )
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Runs in the order of their sources, each once, and a line for each that was left out."""

    runs: tuple[PublishedRun, ...]
    formats: tuple[str, ...]
    left_out: tuple[str, ...]


def format_of(source: Source, only: str | None = None) -> Format:
    """The format of a text, or of the part of it that is asked for.

    Raises:
        InputError: the text is in no known format, in several, or not in the one asked for.
    """
    if only is not None and only not in FORMATS:
        raise unknown_name("format", only, FORMATS)
    lines = {name: kind.recognises(source.text) for name, kind in FORMATS.items()}
    found = {name: line for name, line in lines.items() if line and only in (None, name)}
    if not found:
        wrong = "is in no known format" if only is None else f"holds no output of {only}"
        raise InputError(source.name, wrong, f"known: {', '.join(FORMATS)}")
    if len(found) > 1:
        listed = " and ".join(f"{name} (line {line})" for name, line in found.items())
        right = f"give one a file, or --only {next(iter(found))}"
        raise InputError(source.name, f"holds {listed}", right)
    return FORMATS[next(iter(found))]


def imported(sources: Sequence[Source], given: Given, only: str | None = None) -> Imported:
    """The runs in texts, blanks filled with what a person gave.

    Raises:
        InputError: a text cannot be used, holds no run, or states something else than was given.
    """
    runs: dict[str, PublishedRun] = {}
    left_out: list[str] = []
    names: list[str] = []
    for source in sources:
        kind = format_of(source, only)
        found = kind.read(source.text, source.name)
        left_out += found.left_out
        names.append(kind.name)
        for row in found.rows:
            run = run_of(row, kind.name, source.name, fill(row, given, source.name))
            if run.id in runs:
                left_out.append(f"{source.name}, {row.place}: the same run again, left out")
            runs.setdefault(run.id, run)
        if not found.rows:
            wrong = f"holds no run of {kind.name}"
            raise InputError(
                source.name, wrong, found.left_out[0] if found.left_out else "give one"
            )
    return Imported(
        runs=with_baselines(tuple(runs.values())), formats=tuple(names), left_out=tuple(left_out)
    )
