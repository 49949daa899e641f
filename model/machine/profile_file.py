"""Profiles as files: read with every mistake named, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast
from zlib import crc32

from model.errors import InputError
from model.machine.constant import Constant
from model.machine.profile import SCHEMA, Header, Profile, seeded_draws
from model.machine.profile_rules import (
    REMEDY,
    check_evidence,
    check_header,
    check_laws,
    check_schema,
    read_constant,
)
from model.typed_json import record_from_json
from model.whole_file import replace_file

MAX_PROFILE_BYTES = 32 * 1024 * 1024
STATED_DRAWS = 200
"""Draws made for constants that a file states with a standard error only."""


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
    except (ValueError, RecursionError) as error:
        raise InputError(where, f"is not whole JSON ({error})", REMEDY) from None
    if not isinstance(document, Mapping):
        raise InputError(where, "is not a profile", "give a file that `calibrate` wrote")
    fields = dict(cast("Mapping[str, Any]", document))
    check_schema(fields.pop("schema", None), where)
    environment, samples = fields.pop("environment", {}), fields.pop("samples", [])
    check_evidence(environment, samples, where)
    stated = fields.pop("constants", None)
    fields.pop("notes", None)
    if not isinstance(stated, Mapping) or not stated:
        raise InputError(f"{where}: constants", "is missing or empty", REMEDY)
    header = record_from_json(Header, fields, where)
    constants = {
        str(name): read_constant(str(name), value, where)
        for name, value in cast("Mapping[Any, Any]", stated).items()
    }
    check_header(header, where)
    check_laws(header, constants, where)
    return Profile(
        header=header,
        constants=with_common_draws(constants),
        environment=environment,
        samples=tuple(samples),
    )


def with_common_draws(constants: Mapping[str, Constant]) -> dict[str, Constant]:
    """Every constant with as many draws as the longest; others' are made from their error bars."""
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
    header = asdict(profile.header)
    # Left out rather than null or 0, so that versions before the fields read the file.
    if header["gpu"] is None:
        del header["gpu"]
    if not header["several_rows_residual_log"]:
        del header["several_rows_residual_log"]
    document = {
        "schema": SCHEMA,
        **header,
        "laws": list(header["laws"]),
        "environment": dict(profile.environment),
        "constants": {
            name: constant.stated | {"draws": [float(f"{draw:.6g}") for draw in constant.draws]}
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
    """Write a profile atomically: a reader sees the old file or the new one, never a part.

    Raises:
        InputError: nothing can be written there.
    """
    replace_file(path, profile_to_json(profile))
