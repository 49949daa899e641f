"""What a Vega-Lite specification draws: every encoding with the rows that it must find in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

PARTS = ("layer", "hconcat", "vconcat", "concat")


def encodings(
    spec: Any, datasets: Any = None, data: Any = None, channels: Any = None
) -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """Every channel that draws a field of the data, in any layer or part of the picture."""
    datasets = spec.get("datasets", datasets)
    data = spec.get("data", data)
    channels = cast("dict[str, Any]", {**(channels or {}), **spec.get("encoding", {})})
    parts = [each for name in PARTS for each in spec.get(name, [])]
    parts += [spec["spec"]] if "spec" in spec else []
    for part in parts:
        yield from encodings(part, datasets, data, channels)
    if parts:
        return
    rows = data["values"] if "values" in data else datasets[data["name"]]
    made = {name for each in spec.get("transform", []) for name in names_made(each)}
    for channel, drawn in channels.items():
        several = cast("list[dict[str, Any]]", drawn if isinstance(drawn, list) else [drawn])
        for each in several:
            if "field" in each and each["field"] not in made:
                yield channel, each, rows


def names_made(transform: dict[str, Any]) -> list[str]:
    """The fields that a transform adds."""
    made = transform.get("as", [])
    return [made] if isinstance(made, str) else list(made)
