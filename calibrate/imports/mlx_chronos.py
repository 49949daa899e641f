"""mlx-chronos: the JSON result of one benchmark of a local server on Apple silicon.

One plain run a file: the mean over its trials of the decode rate, where the version measures it
(0.3 and later), else of the whole request's, prompt and overhead included; the notes say which. A
result that counted words where the server did not count tokens is kept at trust "low". Cold and
cached times to the first token have no column and are not kept; neither is the sustained profile.

Learnt from igurss/mlx-chronos: mlx_chronos/schema.py and the submitted results of 0.1.0 and 0.4.0.
Its Markdown reports and the index of its leaderboard are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from calibrate.imports.cells import chip_name, mlx_name, rate, written
from calibrate.imports.documents import WHOLE, first_line, json_objects
from calibrate.imports.found import Found, Row
from model.errors import InputError

NAME = "mlx-chronos"
SIGN = re.compile(r'"chronos_version"\s*:')
RATES = ("decode_tokens_per_second", "request_tokens_per_second", "tokens_per_second")


def recognises(text: str) -> int:
    """The first line that shows it, or 0."""
    return first_line(SIGN, text)


def read(text: str, where: str) -> Found:
    """The results of a text as rows.

    Raises:
        InputError: a document is cut off, or lacks what every version writes.
    """
    return Found(
        rows=tuple(row(result, where, place) for place, result in json_objects(text, where))
    )


def row(result: Mapping[str, object], where: str, place: str) -> Row:
    """The row of one result."""
    here = f"{where}, {place}"
    hardware, engine, network, metrics, meta = (
        part(result, name, here) for name in ("hardware", "engine", "model", "metrics", "meta")
    )
    measure = next((name for name in RATES if metrics.get(name)), RATES[-1])
    statistics = part(metrics, measure, f"{here}, metrics")
    here = f"{here}, metrics, {measure}"
    mean, _ = rate(stated(statistics, "mean"), f"{here}, mean")
    name, time = stated(network, "name"), stated(meta, "timestamp")
    target, quant = mlx_name(name)
    words = stated(metrics, "token_count_source") not in ("", "usage.completion_tokens")
    notes = [
        "decode alone" if measure == RATES[0] else "whole requests, prompt and overhead included",
        f"standard deviation {stated(statistics, 'stddev')} tok/s",
        f"mlx-chronos {stated(meta, 'chronos_version')}",
        f"macOS {stated(hardware, 'macos_version')}",
        f"thermal state {stated(hardware, 'thermal_state') or 'not stated'}",
        "tokens were counted as words" if words else "",
        name if name != target else "",
        stated(network, "reference_url"),
    ]
    return Row(
        place=place,
        cells={
            "chip": chip_name(stated(hardware, "chip")),
            "memory_gb": stated(hardware, "memory_gb"),
            "runtime": stated(engine, "name"),
            "runtime_version": stated(engine, "version"),
            "target_model": target,
            "quant": stated(network, "quantization") or quant,
            "strategy": "plain",
            "batch": "1",
            "decode_tok_s": written(mean),
            "date": time[:10],
            "task": f"mlx-chronos {stated(meta, 'benchmark_profile') or 'baseline'}",
            "notes": "; ".join(note for note in notes if note),
            "trust": "low" if words else "medium",
        },
        stamp=time,
    )


def part(result: Mapping[str, object], name: str, here: str) -> Mapping[str, object]:
    """An object inside a result, which every version has."""
    value = result.get(name)
    if not isinstance(value, Mapping):
        raise InputError(here, f"has no {name}", WHOLE)
    return cast("Mapping[str, object]", value)


def stated(values: Mapping[str, object], name: str) -> str:
    """A value as text, or nothing where it is absent or null."""
    value = values.get(name)
    return "" if value is None else str(value)
