from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from calibrate.environment import Environment
from calibrate.samples import Line
from calibrate.session import SCHEMA, Header, SessionFile, Speed, read_session
from calibrate.timing import Visit
from model.errors import InputError

MACHINE = Environment(
    device="metal",
    chip="Apple M3",
    architecture="applegpu_g15g",
    memory_bytes=16 * 2**30,
    recommended_working_set_bytes=11_453_251_584,
    os="macOS 26.2",
    python="3.12.1",
    mlx="0.32.4",
    mlx_lm="0.32.2",
    mlx_variables=(("MLX_MAX_OPS_PER_BUFFER", "40"),),
    processors=8,
)
HEADER = Header(
    schema=SCHEMA,
    began=1_780_000_000.0,
    mode="quick",
    formats=("4bit", "bf16"),
    plan="0123456789abcdef",
    speed=Speed(row_weights_per_s=5e11, bytes_per_s=9e10, kernel_s=5e-6),
    environment=MACHINE,
)
VISIT = Visit(units=200, times_s=(0.02, 0.021), check_units=100, check_s=0.01)
SEEN = Line(probe="attention", settings="context=64 rows=2", sweep=0, at=1.5, visit=VISIT)
SKIPPED = Line(probe="linear", settings="format=bf16 rows=2", sweep=0, at=2.5, reason="no room")


def test_a_session_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "m3.jsonl"
    file = SessionFile(path, HEADER)
    file.append(SEEN)
    file.append(SKIPPED)
    session = read_session(path)
    assert session is not None
    assert session.header == HEADER
    assert session.lines == (SEEN, SKIPPED)
    assert session.skipped == (SKIPPED,)
    assert [sample.probe for sample in session.samples] == ["attention"]


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "m3.jsonl"
    SessionFile(path, HEADER).append(SEEN)
    later = SessionFile(path, replace(HEADER, began=HEADER.began + 3600))
    assert later.lines == [SEEN]
    assert later.header == HEADER


@pytest.mark.parametrize("torn", ['{"probe": "lin', '{"probe"'])
def test_a_torn_last_line_is_forgotten(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "m3.jsonl"
    SessionFile(path, HEADER).append(SEEN)
    with path.open("a", encoding="utf-8") as file:
        file.write(torn)
    again = SessionFile(path, HEADER)
    again.append(SKIPPED)
    session = read_session(path)
    assert session is not None
    assert session.lines == (SEEN, SKIPPED)


def test_no_file_is_no_session(tmp_path: Path) -> None:
    assert read_session(tmp_path / "none.jsonl") is None
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert read_session(empty) is None


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (replace(HEADER, environment=replace(MACHINE, mlx="0.31.2")), "mlx 0.32.4"),
        (replace(HEADER, environment=replace(MACHINE, mlx_variables=())), "mlx_variables"),
        (
            replace(HEADER, environment=replace(MACHINE, processors=4)),
            "processors 8, and this is 4",
        ),
        (replace(HEADER, mode="full"), "another mode"),
        (replace(HEADER, formats=("4bit",)), "other formats"),
        (replace(HEADER, plan="fedcba9876543210"), "another plan"),
    ],
)
def test_it_refuses_to_mix(tmp_path: Path, other: Header, named: str) -> None:
    path = tmp_path / "m3.jsonl"
    SessionFile(path, HEADER).append(SEEN)
    before = path.read_bytes()
    with pytest.raises(InputError, match=named):
        SessionFile(path, other)
    assert path.read_bytes() == before


def test_a_session_that_does_not_state_its_processors_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "m3.jsonl"
    SessionFile(path, HEADER).append(SEEN)
    path.write_text(path.read_text().replace(', "processors": 8', ""))
    assert SessionFile(path, HEADER).lines == [SEEN]


def test_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    (tmp_path / "s.jsonl.part").mkdir()
    with pytest.raises(InputError, match=r"s\.jsonl: cannot be written \(is a directory\)"):
        SessionFile(path, HEADER)


def test_a_line_that_cannot_be_kept_is_one_line_and_loses_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    file = SessionFile(path, HEADER)
    file.append(SEEN)

    def full(*_: object, **__: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        with pytest.raises(InputError, match=r"s\.jsonl: cannot be written \(no space left"):
            file.append(SKIPPED)
    kept = read_session(path)
    assert kept is not None
    assert kept.lines == (SEEN,)


@pytest.mark.parametrize("content", ["just a note", "just a note\n", "[1, 2]\n", "{}\n"])
def test_what_is_no_session_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "note.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"note\.txt"):
        SessionFile(path, HEADER)
    assert path.read_text(encoding="utf-8") == content


def test_another_version_of_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m3.jsonl"
    SessionFile(path, HEADER)
    header = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**header, "schema": "tokroof.session/0"}) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="schema"):
        read_session(path)
