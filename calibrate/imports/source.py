"""A file that a person gives, or standard input, as text: whatever its encoding mark says."""

from __future__ import annotations

import codecs
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, final

from model.errors import InputError

MAX_BYTES = 64 * 1024 * 1024
"""More than any benchmark prints; a larger file is something else, and is not read whole."""
STDIN = "-"
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
RIGHT = "give what a benchmark printed, as UTF-8 text"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A text and what to call it in messages."""

    name: str
    text: str


def read_source(name: str) -> Source:
    """The text of a file, or of standard input for "-".

    Raises:
        InputError: it cannot be read, is empty, is larger than 64 MiB, or is not text in UTF-8, or
            in UTF-16 with a byte order mark (as Windows PowerShell redirects output).
    """
    try:
        if name == STDIN:
            return Source(name="standard input", text=decoded(sys.stdin.buffer, "standard input"))
        with Path(name).open("rb") as stream:
            return Source(name=name, text=decoded(stream, name))
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise InputError(name, f"cannot be read ({reason})", RIGHT) from error


def decoded(stream: BinaryIO, name: str) -> str:
    """The text in a stream, its line ends turned to line feeds. Raises as `read_source` does."""
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        wrong = f"is larger than {MAX_BYTES // 2**20} MiB"
        raise InputError(name, wrong, "give the benchmark's output alone")
    encoding = next((kind for mark, kind in MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        called = "UTF-16" if encoding == "utf-16" else "UTF-8"
        wrong = f"is not {called} (byte {error.start})"
        raise InputError(f"{name}, line {line}", wrong, "save it as UTF-8") from error
    if "\0" in text:
        wrong = "holds zero bytes: UTF-16 without its mark, or no text"
        raise InputError(name, wrong, "save it as UTF-8")
    if not text.strip():
        raise InputError(name, "is empty", RIGHT)
    # A progress line that is drawn over ends in a carriage return alone.
    return text.replace("\r\n", "\n").replace("\r", "\n")
