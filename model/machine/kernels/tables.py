"""The tables of MLX's kernels, cut down to the lines that hold for one release and one GPU.

A line may leave out what does not limit it: it then holds for every release that is known, every
generation and every size.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from model.catalog import kernel_data
from model.machine.kernels.gpu import Gpu
from model.machine.kernels.releases import Release, release_of
from model.typed_json import record_from_json

BACK_ENDS = ("metal", "cuda", "cpu")
SCOPE = ("since", "until", "least_generation", "most_generation", "sizes", "source")

Line = TypeVar("Line")


def lines_for(
    kind: type[Line],
    table: str,
    back_end: str,
    release: Release,
    gpu: Gpu | None,
    **left_out: object,
) -> list[Line]:
    """The lines of a back end's table that hold, as records, in the order of the file.

    `left_out` is what a line means that does not state a field. Without a GPU only lines that ask
    nothing of it hold.
    """
    stated = _stated(kind, table, back_end, tuple(left_out.items()))
    return [record for line, record in stated if _holds(line, release, gpu)]


@cache
def _stated(
    kind: type[Line], table: str, back_end: str, left_out: tuple[tuple[str, object], ...]
) -> list[tuple[dict[str, Any], Line]]:
    """Every line of a table as it is and as a record."""
    where = f"{back_end} {table}"
    return [
        (line, record_from_json(kind, {**dict(left_out), **without_scope(line)}, where))
        for line in kernel_data(back_end).get(table, [])
    ]


def without_scope(line: Mapping[str, Any]) -> dict[str, Any]:
    """What a line says, apart from when and where it holds and who says so."""
    return {name: value for name, value in line.items() if name not in SCOPE}


def _holds(line: Mapping[str, Any], release: Release, gpu: Gpu | None) -> bool:
    if "since" in line and release < release_of(line["since"]):
        return False
    if "until" in line and release >= release_of(line["until"]):
        return False
    if gpu is None:
        return not line.keys() & {"least_generation", "most_generation", "sizes"}
    least = line.get("least_generation", gpu.generation)
    most = line.get("most_generation", gpu.generation)
    return least <= gpu.generation <= most and gpu.size in line.get("sizes", gpu.size)
