"""Whatever file a person brings, it is kept or refused in one line that names the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dashboard.uploads import kept_profile, kept_runs
from model.catalog import packaged_profile_text
from model.errors import InputError
from model.machine.profile_file import read_profile
from model.machine.profile_store import DEFAULT_MACHINE

RUNS = Path(__file__).parent.parent.parent / "calibrate" / "data" / "runs" / "h200-mlx-0.32.4.jsonl"
PROFILE = packaged_profile_text(DEFAULT_MACHINE)
RUN = RUNS.read_text().partition("\n")[0]
MEGABYTE = 1_000_000

REFUSED = {
    "nothing": b"",
    "more than 10 MB": b" " * (11 * MEGABYTE),
    "10 MB of blanks": b" " * (10 * MEGABYTE),
    "10 MB of empty lines": b"\n" * (10 * MEGABYTE),
    "10 MB of zeros": b"\0" * (10 * MEGABYTE),
    "10 MB of commas": b"," * (10 * MEGABYTE),
    "10 MB in one word": b"x" * (10 * MEGABYTE),
    "a list of a million numbers": json.dumps({"schema": 1, "x": [*range(MEGABYTE)]}).encode(),
    "lists in lists": b"[" * MEGABYTE,
    "objects in objects": b'{"target_model": ' * 100_000,
    "a number of 5000 digits": b'{"schema": ' + b"1" * 5000 + b"}",
    "half a character": b'{"name": "\xff"}',
    "another alphabet's half": json.dumps({"name": "\ud800", "id": "\ud800"}).encode(),
    "no object": b"null",
    "half a file": PROFILE[: len(PROFILE) // 2].encode(),
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("kept", [kept_profile, kept_runs])
def test_what_is_none_of_ours_is_refused_in_one_line(kept: object, content: bytes) -> None:
    assert callable(kept)
    with pytest.raises(InputError) as refused:
        kept(content, "mine.json")
    said = str(refused.value)
    assert said.startswith("mine.json")
    assert len(said.splitlines()) == 1
    assert "/tmp" not in said


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"schema": 99}, "schema"),
        ({"schema": "1"}, "schema"),
        ({"constants": {}}, "constants"),
        ({"residual_log": "much"}, "residual_log"),
        ({"residual_log": float("nan")}, "residual_log"),
        ({"memory_bytes": -1}, "memory_bytes"),
        ({"name": "../../elsewhere"}, "cannot name a file"),
        ({"name": 7}, "name"),
    ],
)
def test_a_profile_with_a_wrong_field_is_refused_by_its_name(
    changes: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        kept_profile(json.dumps(json.loads(PROFILE) | changes).encode(), "mine.json")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"tokens": 96', '"tokens": 1e999'),
        ('"tokens": 96', '"tokens": ' + "9" * 5000),
        ('"round_s": [', '"round_s": [' + "[" * 100_000),
        ('"strategy": "plain"', '"strategy": "guess"'),
        ('"draft_length": 0', '"draft_length": "none"'),
    ],
)
def test_a_record_with_a_wrong_field_is_refused_by_its_line(before: str, after: str) -> None:
    assert before in RUN
    with pytest.raises(InputError) as refused:
        kept_runs(f"{RUN}\n{RUN.replace(before, after)}\n".encode(), "mine.jsonl")
    assert len(str(refused.value)) < 500


def test_what_is_kept_is_what_was_brought() -> None:
    document = json.loads(PROFILE) | {"name": "mine"}
    assert read_profile(kept_profile(json.dumps(document).encode(), "any.json")).header.name == (
        "mine"
    )
    assert kept_runs(RUNS.read_bytes(), "runs").path.read_bytes() == RUNS.read_bytes()
