"""The session file: a header, then one line per visit, appended when the visit is over.

JSON Lines, so an interrupted measurement loses at most the visit it was in, and a second call
goes on from there. A session is of one environment and one plan, and refuses any other.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

from calibrate.environment import Environment
from calibrate.samples import Line, Sample, samples_of
from model.errors import InputError, unwritable
from model.typed_json import record_from_json

SCHEMA = "tokroof.session/1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """A first look at a device, good enough to choose sizes and to guess times.

    `row_weights_per_s`: weights that one row of activations passes per second in the dearest
    kernel; `bytes_per_s`: weights read; `kernel_s`: the floor of a dependent kernel.
    """

    row_weights_per_s: float
    bytes_per_s: float
    kernel_s: float

    def made_s(self, size_bytes: int) -> float:
        """A guess of the time that filling so much memory takes."""
        return 0.05 + 4 * size_bytes / self.bytes_per_s


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a session measures, and where.

    The plan follows from mode, formats and the `speed` that the session began with; `plan` is
    its fingerprint. `began` is in seconds since the epoch.
    """

    schema: str
    began: float
    mode: str
    formats: tuple[str, ...]
    plan: str
    speed: Speed
    environment: Environment


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A header and the lines so far."""

    header: Header
    lines: tuple[Line, ...]

    @property
    def samples(self) -> tuple[Sample, ...]:
        """One sample per probe that was visited; one per visit of the reference kernel."""
        return samples_of(self.lines)

    @property
    def skipped(self) -> tuple[Line, ...]:
        """The probes that could not be measured, and why."""
        return tuple(line for line in self.lines if line.reason is not None)


def read_session(path: Path) -> Session | None:
    """The session in a file; None if there is no file, or nothing whole in it yet.

    The last line counts only with its end: it may have been interrupted.

    Raises:
        InputError: the file is not a session, or not of this version.
    """
    try:
        texts = path.read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), "cannot be read", "give a session file") from error
    if not texts:
        if path.stat().st_size:
            raise InputError(str(path), "is not a session", "give another session file")
        return None
    header = record_from_json(Header, _parsed(path, 1, texts[0]), f"{path}:1")
    if header.schema != SCHEMA:
        wrong = f"has the schema {header.schema}, not {SCHEMA}"
        raise InputError(str(path), wrong, "measure again into a new file")
    lines = (
        record_from_json(Line, _parsed(path, number, text), f"{path}:{number}")
        for number, text in enumerate(texts[1:], start=2)
    )
    return Session(header=header, lines=tuple(lines))


def check_same(path: Path, found: Header, wanted: Header) -> None:
    """Refuse to go on with a session of another environment or plan.

    Raises:
        InputError: it names the first thing that differs.
    """
    right = "remove it, or start over with --fresh"
    was, now = found.environment.to_json(), wanted.environment.to_json()
    if not was["processors"]:
        del was["processors"]  # begun before sessions stated them
    for name in was:
        if was[name] != now[name]:
            wrong = f"was measured with {name} {was[name]}, and this is {now[name]}"
            raise InputError(str(path), wrong, right)
    for name, called in (("mode", "another mode"), ("formats", "other formats")):
        if getattr(found, name) != getattr(wanted, name):
            raise InputError(str(path), f"was measured with {called}", right)
    if found.plan != wanted.plan:
        raise InputError(str(path), "was measured with another plan", right)


@final
class SessionFile:
    """A session file open for appending; `header` is what it began with.

    Raises:
        InputError: it is no session, one of another environment or plan, or cannot be written.
    """

    def __init__(self, path: Path, header: Header) -> None:
        found = read_session(path)
        if found is None:
            self._write_atomically(path, header)
            found = Session(header=header, lines=())
        else:
            check_same(path, found.header, header)
            _drop_torn_line(path)
        self.header = found.header
        self.lines = list(found.lines)
        self._path = path

    def append(self, line: Line) -> None:
        """Keep a line, in the file too.

        Raises:
            InputError: it cannot be written, as on a full disk; the lines before it are kept.
        """
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(line)) + "\n")
        except OSError as error:
            raise unwritable(self._path, error) from error
        self.lines.append(line)

    @staticmethod
    def _write_atomically(path: Path, header: Header) -> None:
        draft = path.with_name(path.name + ".part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(asdict(header)) + "\n", encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            raise unwritable(path, error) from error


def _drop_torn_line(path: Path) -> None:
    """Cut off a last line that was interrupted, so that the next one starts on its own."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)


def _parsed(path: Path, number: int, text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}:{number}", "is not JSON", "give a session file") from error
