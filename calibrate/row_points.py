"""Measured times by rows: the samples of a calibration, or what others published of the chip.

A point is the time of a kernel, of whole layers or of a pass at some rows over its own time at
one row. Those of a kernel leave out the other matrices, attention and dispatch, so they are not
the curve of a pass. Published rows of hot matrices are left out: at one row they come from a
cache, which inflates every ratio.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from calibrate.published.evidence import row_costs
from calibrate.published.runtimes import MLX_ENGINES, dated_family
from calibrate.samples import settings_from_text
from model.errors import InputError
from model.machine.kernels.releases import priced_release
from model.machine.kernels.runtime_change import as_runtime
from model.machine.profile import Profile
from model.machine.row_law import Product
from model.network.checkpoint import Checkpoint
from model.network.weight_format import weight_format

KINDS = {
    "kernel": "kernel",
    "kernel (dependent chain)": "kernel",
    "model forward": "pass",
    "batched decode step": "pass",
    "batched decode step (2nd run)": "pass",
}
"""Published kinds that time a product or a pass by its rows, and nothing else."""
UNUSUAL = ("MLX_METAL_GPU_ARCH", "not merged", "wide off", "custom", "RowExact")
"""Versions that run other kernels than MLX would choose."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowPoint:
    """A measured ratio: the time at `rows` over that at one row, of what, and where it stands.

    `predicted` is the same ratio of the same matrix by the row law; None where the matrix is not
    known, or the law cannot price it.
    """

    format: str
    runtime: str
    rows: int
    relative: float
    predicted: float | None
    kind: str
    what: str
    source: str


def row_points(profile: Profile, target: Checkpoint, *, most_rows: int) -> tuple[RowPoint, ...]:
    """The points of a machine, up to `most_rows`: its own where it was calibrated."""
    own = tuple(own_points(profile, target))
    found = own or tuple(published_points(profile))
    return tuple(
        replace(point, predicted=law_ratio(profile, point))
        for point in found
        if 1 < point.rows <= most_rows
    )


def law_ratio(profile: Profile, point: RowPoint) -> float | None:
    """What the row law says of the matrix of a point, under the release that it was run with."""
    shape = re.match(r"(\d+) ?-> ?(\d+)\b", point.what)
    if shape is None:
        return None
    depth, columns = int(shape[1]), int(shape[2])
    try:
        stored_as = weight_format(point.format)
        own = same_series(profile.header.runtime, point.runtime)
        machine = (profile if own else as_runtime(profile, point.runtime)).machine
        law = machine.law(stored_as, depth=depth, columns=columns)
    except InputError:
        return None
    read_bytes = stored_as.matrix_bytes(columns, depth)
    product = Product(read_bytes=read_bytes, depth=depth, columns=columns)
    one, several = law.time(product, 1).total_s, law.time(product, point.rows).total_s
    return float(several) / float(one)


def own_points(profile: Profile, target: Checkpoint) -> Iterator[RowPoint]:
    """The profile's own products, of the measured shape that is nearest to the target's."""
    times: dict[tuple[str, int, int], dict[int, float]] = {}
    for sample in profile.samples:
        if sample.get("probe") == "linear":
            of = dict(settings_from_text(str(sample["settings"])))
            shape = str(of["format"]), int(of["depth"]), int(of["columns"])
            times.setdefault(shape, {})[int(of["rows"])] = float(sample["seconds"])
    depth, columns = heaviest_shape(target)
    for name in sorted({shape[0] for shape in times}):
        shapes = [shape for shape in times if shape[0] == name and 1 in times[shape]]
        if not shapes:
            continue
        nearest = min(
            shapes,
            key=lambda each: abs(math.log(each[1] / depth)) + abs(math.log(each[2] / columns)),
        )
        for rows, seconds in times[nearest].items():
            yield RowPoint(
                format=name,
                runtime=profile.header.runtime,
                rows=rows,
                relative=seconds / times[nearest][1],
                predicted=None,
                kind="kernel",
                what=f"{nearest[1]} -> {nearest[2]}",
                source=f"calibration of {profile.header.created[:10]}",
            )


def heaviest_shape(target: Checkpoint) -> tuple[int, int]:
    """Depth and columns of the group of matrices with most weights."""
    groups = [
        siblings
        for layer, _, _ in target.layer_kinds
        for siblings in (*layer.siblings, *(layer.experts.siblings if layer.experts else ()))
    ]
    heaviest = max(groups, key=lambda siblings: siblings.weights)
    return heaviest.matrices[0].depth, heaviest.columns


def published_points(profile: Profile) -> Iterator[RowPoint]:
    """What others measured on the same chip."""
    for row in row_costs():
        runtime = published_runtime(row)
        kind = KINDS.get(row["kind"])
        if runtime is None or kind is None or not same_chip(profile.header.chip, row):
            continue
        if row["cold_or_hot"] != "cold" or row["trust"] == "low" or not row["ratio_to_M1"]:
            continue
        yield RowPoint(
            format=published_format(row["weight_format"]),
            runtime=runtime,
            rows=int(row["M"]),
            relative=float(row["ratio_to_M1"]),
            predicted=None,
            kind=kind,
            what=row["shape_or_model"],
            source=row["source"],
        )


def same_chip(chip: str, row: Mapping[str, str]) -> bool:
    """Whether a row is of the chip of a profile: "Apple M3 Max, 40-core GPU".

    >>> same_chip("Apple M3 Max, 40-core GPU", {"chip": "M3 Max", "gpu_cores": ""})
    True
    >>> same_chip("Apple M3 Max, 40-core GPU", {"chip": "M3 Max", "gpu_cores": "30"})
    False
    """
    name, _, cores = chip.removeprefix("Apple ").partition(", ")
    return row["chip"] == name and row["gpu_cores"] in ("", cores.partition("-")[0])


def published_runtime(row: Mapping[str, str]) -> str | None:
    """The series of MLX that ran a row; None where it is not known, or was no usual MLX."""
    version = row["runtime_version"]
    named = f"{row['runtime']} {version}"
    if not row["runtime"].lower().startswith((*MLX_ENGINES, "mlxcel")):
        return None
    if any(word in named for word in UNUSUAL) or "CUDA" in named:
        return None
    stated = re.search(r"\b0\.(\d\d)\b", version)
    if stated is not None:
        return f"mlx-0.{stated[1]}"
    date = re.search(r"20\d\d-\d\d", version)
    return None if date is None else dated_family(date[0])


def published_format(text: str) -> str:
    """The weight format that a row's words mean.

    >>> published_format("affine 4-bit g64"), published_format("fp16"), published_format("nvfp4")
    ('4bit', 'bf16', 'nvfp4')
    """
    bits = re.search(r"\b(\d)-?bit", text)
    if bits is not None:
        return f"{bits[1]}bit"
    return "bf16" if text in ("fp16", "bf16") else text


def same_series(one: str, other: str) -> bool:
    """Whether two runtimes are of one series of MLX, whose kernels hardly differ.

    >>> same_series("mlx-0.32", "mlx-0.32.1"), same_series("mlx-0.32", "mlx-0.31")
    (True, False)
    """
    first, second = priced_release(one), priced_release(other)
    if first is None or second is None:
        return one == other
    return first[:2] == second[:2]
