"""`tokroof import`: what other benchmarks printed, as runs that `validate` and `audit` read."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from calibrate.imports.blanks import Given
from calibrate.imports.registry import FORMATS, imported
from calibrate.imports.source import STDIN, read_source
from calibrate.published.run_row import PublishedRun
from calibrate.published.write_runs import append_runs, cells_of, suffix_of, write_runs
from model.commands.table import table
from model.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `import`."""
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help=f"output of {', '.join(FORMATS)}; - for stdin"
    )
    parser.add_argument("--output", metavar="RUNS", help="write the runs to this .csv or .jsonl")
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--append", action="store_true", help="add to --output what it lacks")
    existing.add_argument("--force", action="store_true", help="replace --output if it exists")
    parser.add_argument("--only", metavar="FORMAT", help="of a file with several, this one")
    parser.add_argument("--chip", help="fills the blank: chip, such as M3 Max")
    parser.add_argument("--gpu-cores", metavar="N", help="fills the blank: GPU cores")
    parser.add_argument("--memory", metavar="GB", help="fills the blank: memory of the machine")
    parser.add_argument("--model", help="fills the blank: the model's name")
    parser.add_argument("--quant", metavar="Q", help="fills the blank: quantization")
    parser.add_argument("--date", help="fills the blank: year, month or day, as 2026-11-29")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Read, convert, write, and say what was left out."""
    output = checked_output(options)
    given = Given(
        chip=options.chip,
        gpu_cores=options.gpu_cores,
        memory=options.memory,
        model=options.model,
        quant=options.quant,
        date=options.date,
    )
    found = imported([read_source(name) for name in options.files], given, options.only)
    for line in found.left_out:
        print(f"note: {line}", file=sys.stderr)
    if output is not None:
        print(f"note: {store(found.runs, output, append=options.append)}", file=sys.stderr)
    if options.json:
        files = [
            {"file": file, "format": name}
            for file, name in zip(options.files, found.formats, strict=True)
        ]
        runs = [cells_of(run) for run in found.runs]
        print(json.dumps({"files": files, "runs": runs, "left_out": found.left_out}, indent=2))
    elif output is None:
        print(runs_table(found.runs))
    return 0


def checked_output(options: argparse.Namespace) -> Path | None:
    """The file to write, if any, refused where something would be lost.

    Raises:
        InputError: it exists and neither --append nor --force is given, is read at the same time,
            or is named like neither CSV nor JSON lines; or one of these comes without a file.
    """
    if options.output is None:
        for flag in ("append", "force"):
            if getattr(options, flag):
                wrong = "says how to write, and nothing is written"
                raise InputError(f"--{flag}", wrong, "add --output RUNS")
        return None
    path = Path(options.output)
    suffix_of(path)
    if path.exists():
        if path.is_dir():
            raise InputError(f"--output {path}", "is a folder", "give a file")
        if any(
            name != STDIN and Path(name).exists() and path.samefile(name) for name in options.files
        ):
            raise InputError(f"--output {path}", "is also read", "give another file")
        if not (options.append or options.force):
            raise InputError(f"--output {path}", "exists", "add --append or --force")
    return path


def store(runs: Sequence[PublishedRun], path: Path, *, append: bool) -> str:
    """Write the runs, and say what was written."""
    if append and path.exists():
        added = append_runs(runs, path)
        known = len(runs) - len(added)
        return f"{len(added)} runs added to {path}" + (f", {known} already there" if known else "")
    write_runs(runs, path)
    return f"{len(runs)} runs written to {path}"


def runs_table(runs: Sequence[PublishedRun]) -> str:
    """The runs as a person reads them; --json and --output have every column."""
    columns = {
        "chip": "chip",
        "model": "target_model",
        "quant": "quant",
        "strategy": "strategy",
        "draft": "draft_model",
        "k": "k",
        "batch": "batch",
        "context": "context_tokens",
        "prefill tok/s": "prefill_tok_s",
        "decode tok/s": "decode_tok_s",
        "per pass": "tokens_per_pass",
        "speedup": "speedup",
    }
    rows = [[shown(cells_of(run)[column]) for column in columns.values()] for run in runs]
    return table(list(columns), rows)


def shown(cell: str | float | None) -> str:
    """A cell in at most five digits."""
    return f"{cell:.5g}" if isinstance(cell, int | float) else cell or ""
