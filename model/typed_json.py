"""Records from JSON: each value is checked against the type of the field it is for.

A record is a frozen dataclass whose fields are str, bool, int, float, an optional one of these,
a tuple, or another record. Writing needs no code of ours: `json.dumps(asdict(record))`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from model.errors import InputError

Record = TypeVar("Record")

_CALLED = {str: "a text", bool: "true or false", int: "a whole number", float: "a finite number"}


def record_from_json(kind: type[Record], value: object, where: str) -> Record:
    """The record that a parsed JSON object describes.

    Args:
        kind: The dataclass to build; its annotations say what is right.
        value: What `json.loads` gave.
        where: File, line and field so far, for the message.

    Raises:
        InputError: A field without a default is missing, or one is unknown or of another type;
            the message names it.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Pass:
    ...     rows: int
    ...     pass_s: tuple[float, ...]
    >>> record_from_json(Pass, {"rows": 2, "pass_s": [0.1, 3]}, "a.jsonl:1")
    Pass(rows=2, pass_s=(0.1, 3.0))
    >>> record_from_json(Pass, {"rows": 2, "pass_s": [0.1, "x"]}, "a.jsonl:1")
    Traceback (most recent call last):
    model.errors.InputError: a.jsonl:1: pass_s[1]: is 'x'; give a finite number
    """
    return cast("Record", _record(kind, value, where, ""))


def _record(kind: type[Any], value: object, where: str, path: str) -> object:
    if not isinstance(value, Mapping):
        raise _wrong(where, path or "the record", value, "an object with named fields")
    given = cast("Mapping[str, object]", value)
    hints = _hints(kind)
    names = [field.name for field in fields(kind)]
    for field in fields(kind):
        name = field.name
        if name not in given and field.default is MISSING:
            raise InputError(_at(where, _join(path, name)), "is missing", "give every field")
    for name in given:
        if name not in names:
            right = f"the fields are {', '.join(names)}"
            raise InputError(_at(where, _join(path, name)), "is not a field", right)
    return kind(**{n: _value(hints[n], given[n], where, _join(path, n)) for n in given})


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(kind: Any, value: object, where: str, path: str) -> object:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        if value is None and NoneType in get_args(kind):
            return None
        inner = next(each for each in get_args(kind) if each is not NoneType)
        return _value(inner, value, where, path)
    if origin is tuple:
        return _tuple(get_args(kind), value, where, path)
    if is_dataclass(kind):
        return _record(cast("type[Any]", kind), value, where, path)
    return _scalar(kind, value, where, path)


def _tuple(kinds: tuple[Any, ...], value: object, where: str, path: str) -> object:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _wrong(where, path, value, "a list")
    items = cast("Sequence[object]", value)
    if kinds == (float, Ellipsis) and set(map(type, items)) == {float}:
        # The draws of a profile: thousands of numbers, nearly all of them right.
        numbers = cast("Sequence[float]", items)
        if all(map(math.isfinite, numbers)):
            return tuple(numbers)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(items)
    elif len(items) != len(kinds):
        raise _wrong(where, path, items, f"a list of {len(kinds)}")
    each = zip(kinds, items, strict=True)
    return tuple(_value(k, item, where, f"{path}[{i}]") for i, (k, item) in enumerate(each))


def _scalar(kind: type, value: object, where: str, path: str) -> object:
    number = value
    if kind is float and type(value) is int:
        # A whole number of hundreds of digits is none that a float can hold.
        number = float(value) if abs(value) <= sys.float_info.max else math.inf
    finite = not isinstance(number, float) or math.isfinite(number)
    if type(number) is not kind or not finite:
        raise _wrong(where, path, value, _CALLED[kind])
    return number


def _wrong(where: str, path: str, value: object, right: str) -> InputError:
    shown = repr(value)
    return InputError(
        _at(where, path), f"is {shown if len(shown) <= 40 else shown[:37] + '...'}", f"give {right}"
    )


def _at(where: str, path: str) -> str:
    return f"{where}: {path}"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
