"""What skipping each sublayer does to the acceptance, read from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast, final

from model.errors import InputError
from model.network.sublayers import Half, Sublayer
from model.typed_json import record_from_json

LARGEST_BYTES = 10_000_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SublayerFactor:
    """One line: the acceptance is multiplied by `acceptance_factor` when this half is skipped."""

    layer: int
    half: str
    acceptance_factor: float


def read_factors(path: Path) -> dict[Sublayer, float]:
    """The factors in a JSON file: a list of `{"layer", "half", "acceptance_factor"}`.

    `half` is "attention" or "mlp". Sublayers that are not listed are never skipped.

    Raises:
        InputError: the file cannot be read, is not such a list, or names a sublayer twice.
    """
    right = 'give a JSON list of {"layer": 3, "half": "mlp", "acceptance_factor": 0.98}'
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise InputError(str(path), f"is larger than {LARGEST_BYTES / 1e6:.0f} MB", right)
        document: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or "is not JSON in UTF-8"
        raise InputError(str(path), str(reason).lower(), right) from error
    if not isinstance(document, list):
        raise InputError(str(path), "is not a list", right)
    factors: dict[Sublayer, float] = {}
    for index, entry in enumerate(cast("list[object]", document)):
        place = f"{path}: entry {index}"
        if not isinstance(entry, Mapping):
            raise InputError(place, "is not an object", right)
        line = record_from_json(SublayerFactor, cast("Mapping[str, object]", entry), place)
        if line.half not in set(Half):
            raise InputError(f"{place}: half {line.half!r}", "is unknown", "attention or mlp")
        sublayer = Sublayer(layer=line.layer, half=Half(line.half))
        if sublayer in factors:
            raise InputError(f"{place}: {line.half} {line.layer}", "is listed twice", right)
        factors[sublayer] = line.acceptance_factor
    return factors
