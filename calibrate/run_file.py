"""Files of runs: one a line (JSON Lines), so that a file grows by appending.

An interrupted measurement loses nothing that was finished.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from calibrate.run_record import Run
from model.errors import InputError
from model.typed_json import record_from_json

FOLDER = "give a file in a folder that can be"


def appendable_runs(path: Path) -> tuple[Run, ...]:
    """The runs of a file that more can be added to; none where there is no file yet.

    Raises:
        InputError: it is no file, cannot be written, or holds something else than runs.
    """
    if path.is_dir() or not path.parent.is_dir():
        wrong = "is no file in a folder that is there"
        raise InputError(f"--output {path}", wrong, "give a file in a folder that is")
    is_new = not path.exists()
    try:
        os.close(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644))
        if is_new:
            path.unlink()
    except OSError as error:
        wrong = f"cannot be written ({error.strerror})"
        raise InputError(f"--output {path}", wrong, FOLDER) from error
    return () if is_new else read_runs(path)


def append_run(path: Path, run: Run) -> None:
    """Add one run at the end of a file, in one write that is on the disk when this returns.

    Raises:
        InputError: The file cannot be written; what it held is as it was.
    """
    line = json.dumps(asdict(run), allow_nan=False).encode() + b"\n"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            _append(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as error:
        wrong = f"cannot be written ({error.strerror})"
        full = error.errno == errno.ENOSPC
        right = "free some space; what was there is as it was" if full else FOLDER
        raise InputError(str(path), wrong, right) from error


def _append(descriptor: int, line: bytes) -> None:
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line  # a run that was cut off stays alone on its line
    if os.write(descriptor, line) != len(line):
        os.ftruncate(descriptor, size)
        raise OSError(errno.ENOSPC, "the disk is full")
    os.fsync(descriptor)


def read_runs(path: Path, name: str | None = None) -> tuple[Run, ...]:
    """All runs of a file, in its order; `name` is what messages call it, if not its path.

    Raises:
        InputError: The file or a line of it cannot be used; file, line and field are named.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        wrong = f"cannot be read ({getattr(error, 'strerror', None) or 'it is not text'})"
        right = "give a file of runs, one JSON object a line"
        raise InputError(name or str(path), wrong, right) from error
    lines = enumerate(text.split("\n"), start=1)
    return tuple(_parse(line, f"{name or path}:{number}") for number, line in lines if line.strip())


def _parse(line: str, where: str) -> Run:
    def refuse(constant: str) -> NoReturn:
        raise InputError(where, f"holds {constant}", "give finite numbers")

    try:
        value = json.loads(line, parse_constant=refuse)
    except json.JSONDecodeError as error:
        wrong = f"is not whole JSON (column {error.colno}: {error.msg})"
        raise InputError(where, wrong, "delete the line if a write was cut off") from error
    except InputError:
        raise
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of 5000 digits
        raise InputError(where, "is not JSON that can be read", "record the run again") from error
    try:
        return record_from_json(Run, value, where)
    except InputError as error:
        if error.value.startswith(where):
            raise
        raise InputError(f"{where}: {error.value}", error.wrong, error.right) from error
