"""The numbers of a run and the file it is kept in, read before anything is built."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import final

from calibrate.commands.run_options import DEFAULT_TOKENS
from calibrate.run_file import appendable_runs
from model.commands import options as shared


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The numbers of a run, and the file that it is appended to."""

    tokens: int
    context: int
    output: Path | None


def checked(options: argparse.Namespace) -> Request:
    """The numbers that the options give, before anything is built.

    Raises:
        InputError: an option that cannot be met; it is named.
    """
    output = None if options.output is None else Path(options.output)
    if output is not None:
        appendable_runs(output)
    tokens = str(DEFAULT_TOKENS) if options.tokens is None else options.tokens
    return Request(
        tokens=shared.whole_number("--tokens", tokens, least=3, most=100_000),
        context=shared.whole_number("--context", options.context, least=1, most=1_000_000),
        output=output,
    )
