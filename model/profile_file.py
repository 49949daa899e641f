"""Profiles as files: read with every mistake named, written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast, final
from zlib import crc32

import numpy as np

from model.constant import Constant, Origin
from model.errors import InputError
from model.profile import (
    DEVICE_CONSTANTS,
    HOST_CONSTANTS,
    SCHEMA,
    LawForm,
    Profile,
    seeded_draws,
)
from model.row_law import Shape
from model.typed_json import record_from_json

MAX_PROFILE_BYTES = 32 * 1024 * 1024
STATED_DRAWS = 200
"""Draws made for constants that a file states with a standard error only."""

REMEDY = "calibrate again, or restore the file"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The plain fields of a profile file, as they are stored."""

    name: str
    chip: str
    device: str
    runtime: str
    created: str
    memory_bytes: int
    recommended_working_set_bytes: int | None
    activation_bytes: int
    context_measured: int
    residual_log: float
    laws: tuple[LawForm, ...]
    attention: LawForm


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StatedConstant:
    """A constant as it is stored; draws may be left out."""

    value: float
    stderr: float
    unit: str
    origin: str
    draws: tuple[float, ...] = ()


def read_profile(path: Path) -> Profile:
    """The profile in a file.

    Raises:
        InputError: the file cannot be read, is not JSON, comes from a newer schema, or has a
            field that is missing, of another type, not finite or impossible; it is named.
    """
    try:
        if path.stat().st_size > MAX_PROFILE_BYTES:
            raise InputError(str(path), "is larger than any profile", "give a profile file")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            f"machine {str(path)!r}", "is no such file", "`tokroof machines` lists names"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise InputError(str(path), str(reason).lower(), "give a profile file") from None
    return profile_from_json(text, str(path))


def profile_from_json(text: str, where: str) -> Profile:
    """The profile in a JSON text; `where` names it in messages. Raises as `read_profile` does."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(where, f"is not whole JSON ({error})", REMEDY) from None
    if not isinstance(document, Mapping):
        raise InputError(where, "is not a profile", "give a file that `calibrate` wrote")
    fields = dict(cast("Mapping[str, Any]", document))
    check_schema(fields.pop("schema", None), where)
    environment = fields.pop("environment", {})
    samples = fields.pop("samples", [])
    stated = fields.pop("constants", None)
    fields.pop("notes", None)
    if not isinstance(stated, Mapping) or not stated:
        raise InputError(f"{where}: constants", "is missing or empty", REMEDY)
    header = record_from_json(Header, fields, where)
    constants = {
        str(name): read_constant(str(name), value, where)
        for name, value in cast("Mapping[Any, Any]", stated).items()
    }
    check_laws(header, constants, where)
    return Profile(
        **{name: getattr(header, name) for name in Header.__dataclass_fields__},
        constants=with_common_draws(constants),
        environment=environment,
        samples=tuple(samples),
    )


def check_schema(schema: object, where: str) -> None:
    """Refuse a file that this version does not understand."""
    if not isinstance(schema, int) or schema < 1:
        raise InputError(f"{where}: schema", f"is {schema!r}", f"give a number up to {SCHEMA}")
    if schema > SCHEMA:
        raise InputError(
            f"{where}: schema {schema}",
            f"is newer than this tokroof reads ({SCHEMA})",
            "upgrade tokroof, or calibrate again",
        )


def read_constant(name: str, value: object, where: str) -> Constant:
    """One constant; a negative or non-finite number is refused by name."""
    place = f"{where}: constants.{name}"
    if isinstance(value, Mapping):
        value = {"draws": [], **cast("Mapping[str, object]", value)}
    stated = record_from_json(StatedConstant, value, place)
    origins = {origin.label: origin for origin in Origin}
    if stated.origin not in origins:
        raise InputError(f"{place}.origin", f"is {stated.origin!r}", f"one of {', '.join(origins)}")
    if stated.value < 0.0 or stated.stderr < 0.0 or min(stated.draws, default=0.0) < 0.0:
        raise InputError(place, "is negative", "a cost or a rate is 0 or more")
    return Constant(
        value=stated.value,
        stderr=stated.stderr,
        unit=stated.unit,
        origin=origins[stated.origin],
        draws=np.array(stated.draws, dtype=float),
    )


def check_laws(header: Header, constants: Mapping[str, Constant], where: str) -> None:
    """Refuse laws that cannot price a pass: no rows from 1 on, no rate, no known shape."""
    for name in (*DEVICE_CONSTANTS, *HOST_CONSTANTS):
        if name not in constants:
            raise InputError(f"{where}: constants.{name}", "is missing", REMEDY)
    if not header.laws:
        raise InputError(f"{where}: laws", "is empty", "calibrate at least one weight format")
    for law in (*header.laws, header.attention):
        first_rows = [regime.first_row for regime in law.regimes]
        if not first_rows or first_rows[0] != 1 or first_rows != sorted(set(first_rows)):
            raise InputError(
                f"{where}: law {law.name}",
                f"has regimes from rows {first_rows}",
                "start at 1, rise",
            )
        if law.shape and law.shape not in set(Shape):
            raise InputError(f"{where}: law {law.name}", "has an unknown shape", REMEDY)
        if law.overlap is not None and law.overlap < 1.0:
            raise InputError(f"{where}: law {law.name}", "has an overlap below 1", REMEDY)
        for regime in law.regimes:
            prefix = f"{law.name}.{regime.first_row}."
            rates = [
                constants[prefix + rate].value
                for rate in ("bandwidth_bytes_per_s", "flops_per_s")
                if prefix + rate in constants
            ]
            if not rates or min(rates) <= 0.0:
                raise InputError(f"{where}: constants.{prefix}*", "gives no rate above 0", REMEDY)
            if regime.tile_rows is not None and regime.tile_rows < 1.0:
                raise InputError(f"{where}: law {law.name}", "has a tile below one row", REMEDY)


def with_common_draws(constants: Mapping[str, Constant]) -> dict[str, Constant]:
    """Every constant with the same number of draws; missing ones are made from the error bars."""
    count = max((len(constant.draws) for constant in constants.values()), default=0)
    count = count or STATED_DRAWS
    complete: dict[str, Constant] = {}
    for name, constant in constants.items():
        draws = constant.draws
        if len(draws) != count:
            # The name seeds the draws, so that two readings of a file agree.
            draws = seeded_draws(
                constant.value, constant.stderr, count=count, seed=crc32(name.encode())
            )
        complete[name] = Constant(
            value=constant.value,
            stderr=constant.stderr,
            unit=constant.unit,
            origin=constant.origin,
            draws=draws,
        )
    return complete


def profile_to_json(profile: Profile) -> str:
    """The text of a profile file; floats keep the digits that reproduce a prediction."""
    header = {
        name: getattr(profile, name)
        for name in Header.__dataclass_fields__
        if name not in ("laws", "attention")
    }
    document = {
        "schema": SCHEMA,
        **header,
        "environment": dict(profile.environment),
        "laws": [asdict(law) for law in profile.laws],
        "attention": asdict(profile.attention),
        "constants": {
            name: {
                "value": constant.value,
                "stderr": constant.stderr,
                "unit": constant.unit,
                "origin": constant.origin.label,
                "draws": [float(f"{draw:.6g}") for draw in constant.draws],
            }
            for name, constant in profile.constants.items()
        },
        "samples": [dict(sample) for sample in profile.samples],
    }
    fields = (f"{json.dumps(name)}: {entry_lines(value)}" for name, value in document.items())
    return "{\n " + ",\n ".join(fields) + "\n}\n"


def entry_lines(value: object) -> str:
    """JSON with one entry of a list or mapping on each line, so that a change shows as a line."""
    if isinstance(value, list) and value:
        entries = [json.dumps(entry, allow_nan=False) for entry in cast("list[object]", value)]
        return "[\n  " + ",\n  ".join(entries) + "\n ]"
    if isinstance(value, dict) and value:
        pairs = cast("dict[str, object]", value).items()
        entries = [f"{json.dumps(name)}: {json.dumps(e, allow_nan=False)}" for name, e in pairs]
        return "{\n  " + ",\n  ".join(entries) + "\n }"
    return json.dumps(value, allow_nan=False)


def write_profile(profile: Profile, path: Path) -> None:
    """Write a profile atomically: a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(profile_to_json(profile))
            stream.flush()
            os.fsync(stream.fileno())
        # A temporary file is its owner's alone; a profile is not a secret.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
