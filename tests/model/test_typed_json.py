from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from model.errors import InputError
from model.typed_json import record_from_json


@dataclass(frozen=True, kw_only=True)
class Chip:
    name: str
    cores: int | None


@dataclass(frozen=True, kw_only=True)
class Measured:
    seconds: float
    warm: bool
    chip: Chip
    chips: tuple[Chip, ...]
    pairs: tuple[tuple[str, float], ...]


M3 = Chip(name="M3", cores=10)
WHOLE = Measured(
    seconds=0.5, warm=True, chip=M3, chips=(M3, Chip(name="M1", cores=None)), pairs=(("a", 1.0),)
)


def parsed(**changes: Any) -> Any:
    return json.loads(json.dumps({**asdict(WHOLE), **changes}))


def test_what_was_written_comes_back() -> None:
    assert record_from_json(Measured, parsed(), "f.json") == WHOLE


def test_a_whole_number_may_stand_for_a_float() -> None:
    record = record_from_json(Measured, parsed(seconds=2), "f.json")
    assert record.seconds == 2.0
    assert isinstance(record.seconds, float)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seconds": None}, "f.json: seconds: is None; give a finite number"),
        ({"seconds": True}, "f.json: seconds: is True; give a finite number"),
        ({"seconds": float("inf")}, "f.json: seconds: is inf; give a finite number"),
        ({"seconds": 10**400}, "f.json: seconds: is 1000"),
        ({"warm": 1}, "f.json: warm: is 1; give true or false"),
        ({"chip": "M3"}, "f.json: chip: is 'M3'; give an object with named fields"),
        ({"chip": {"name": "M3"}}, "f.json: chip.cores: is missing; give every field"),
        ({"chip": {"name": "M3", "cores": 10.0}}, "chip.cores: is 10.0; give a whole number"),
        ({"chips": [{"name": 3, "cores": 1}]}, "f.json: chips[0].name: is 3; give a text"),
        ({"chips": "M3"}, "f.json: chips: is 'M3'; give a list"),
        ({"pairs": [["a", 1.0], ["b"]]}, "f.json: pairs[1]: is ['b']; give a list of 2"),
        ({"pairs": [["a", "b"]]}, "f.json: pairs[0][1]: is 'b'; give a finite number"),
        ({"speed": 3}, "f.json: speed: is not a field; the fields are seconds, warm, chip"),
        ({"warm": "x" * 999}, "...; give true or false"),
    ],
)
def test_the_field_that_is_wrong_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        record_from_json(Measured, parsed(**changes), "f.json")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize("value", [[1], "text", None, 3])
def test_only_an_object_is_a_record(value: object) -> None:
    with pytest.raises(InputError, match=r"f.json: the record: is .*; give an object"):
        record_from_json(Measured, value, "f.json")
