"""What a profile file must hold: the rules that make its fields priceable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast, final

import numpy as np

from model.errors import InputError
from model.machine.constant import Constant, Origin
from model.machine.kernels.gpu import GENERATIONS, SIZES
from model.machine.profile import (
    ALIGNED,
    DEVICE_CONSTANTS,
    HOST_CONSTANTS,
    SCHEMA,
    SUSTAINED_SHARE,
    TWO_PASS,
    UNFUSED,
    WALK_SHARE,
    Header,
    LawForm,
)
from model.machine.row_law import Shape
from model.typed_json import record_from_json

REMEDY = "calibrate again, or restore the file"

LARGEST_BYTES = 2**50
LARGEST_TILE_ROWS = 65_536
MOST_COLUMNS = 2**24
"""Wider than any vocabulary: no device needs more columns to be full."""
LARGEST_RESIDUAL_LOG = 5.0
"""A scatter by a factor of 150: nothing that could be called a fit."""
MOST_CORES = 1024
LARGEST_VALUE = 1e20
"""Far beyond any rate, so that no product of a few constants leaves the range of a float."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StatedConstant:
    """A constant as it is stored; draws may be left out."""

    value: float
    stderr: float
    unit: str
    origin: str
    draws: tuple[float, ...] = ()


def check_schema(schema: object, where: str) -> None:
    """Refuse a file that this version does not understand."""
    if type(schema) is not int or schema < 1:
        raise InputError(f"{where}: schema", f"is {schema!r}", f"give a number up to {SCHEMA}")
    if schema > SCHEMA:
        raise InputError(
            f"{where}: schema {schema}",
            f"is newer than this tokroof reads ({SCHEMA})",
            "upgrade tokroof, or calibrate again",
        )


def check_evidence(environment: object, samples: object, where: str) -> None:
    """Refuse evidence that could not be kept as it was written."""
    if not isinstance(environment, Mapping):
        raise InputError(f"{where}: environment", "is not an object with named fields", REMEDY)
    pairs = cast("Mapping[str, object]", environment).get("mlx_variables", [])
    if not isinstance(pairs, list) or not all(map(is_pair, cast("list[object]", pairs))):
        place = f"{where}: environment.mlx_variables"
        raise InputError(place, "is not a list of pairs of a name and a value", REMEDY)
    listed = cast("list[object]", samples) if isinstance(samples, list) else [None]
    if not all(isinstance(sample, Mapping) for sample in listed):
        raise InputError(f"{where}: samples", "is not a list of objects", REMEDY)


def is_pair(value: object) -> bool:
    """Whether a value is a list of two strings."""
    both = cast("list[object]", value) if isinstance(value, list) else []
    return len(both) == 2 and all(isinstance(each, str) for each in both)


def read_constant(name: str, value: object, where: str) -> Constant:
    """One constant; a negative, non-finite or absurd number is refused by name."""
    place = f"{where}: constants.{name}"
    stated = record_from_json(StatedConstant, value, place)
    origins = {origin.label: origin for origin in Origin}
    if stated.origin not in origins:
        raise InputError(f"{place}.origin", f"is {stated.origin!r}", f"one of {', '.join(origins)}")
    numbers = (stated.value, stated.stderr, *stated.draws)
    if min(numbers) < 0.0:
        raise InputError(place, "is negative", "a cost or a rate is 0 or more")
    if max(numbers) > LARGEST_VALUE:
        raise InputError(place, "is larger than any cost or rate", REMEDY)
    return Constant(
        value=stated.value,
        stderr=stated.stderr,
        unit=stated.unit,
        origin=origins[stated.origin],
        draws=np.array(stated.draws, dtype=float),
    )


def check_header(header: Header, where: str) -> None:
    """Refuse plain fields that no machine and no fit can have."""
    limit = header.recommended_working_set_bytes
    rules = (
        ("memory_bytes", 1 <= header.memory_bytes <= LARGEST_BYTES),
        ("recommended_working_set_bytes", limit is None or 1 <= limit <= LARGEST_BYTES),
        ("activation_bytes", header.activation_bytes in (2, 4)),
        ("context_measured", header.context_measured >= 1),
        *(
            (name, 0.0 <= getattr(header, name) <= LARGEST_RESIDUAL_LOG)
            for name in ("residual_log", "several_rows_residual_log")
        ),
    )
    for name, holds in rules:
        if not holds:
            raise InputError(f"{where}: {name}", "is not possible", REMEDY)
    gpu = header.gpu
    if gpu is not None and not (
        gpu.generation in GENERATIONS and gpu.size in tuple(SIZES) and 1 <= gpu.cores <= MOST_CORES
    ):
        right = "generation 13 (M1) or later, size g, s, d or p, and 1 or more cores"
        raise InputError(f"{where}: gpu", "is no Apple GPU", f"give {right}")


def check_laws(header: Header, constants: Mapping[str, Constant], where: str) -> None:
    """Refuse laws that cannot price a pass: without a constant, there twice, or impossible."""
    for name in (*DEVICE_CONSTANTS, *HOST_CONSTANTS):
        if name not in constants:
            raise InputError(f"{where}: constants.{name}", "is missing", REMEDY)
    for name, whole in ((SUSTAINED_SHARE, "the cold speed"), (WALK_SHARE, "submitting a pass")):
        share = constants.get(name)
        if share is not None and not 0.0 < share.value <= 1.0:
            place = f"{where}: constants.{name}"
            raise InputError(place, f"is not a share of {whole}", "give more than 0, at most 1")
    if not header.laws:
        raise InputError(f"{where}: laws", "is empty", "calibrate at least one weight format")
    names = [law.name for law in header.all_laws]
    slots = (
        ("attention", header.attention, ""),
        ("two_pass_attention", header.two_pass_attention, TWO_PASS),
        ("unfused_attention", header.unfused_attention, UNFUSED),
        ("aligned_attention", header.aligned_attention, ALIGNED),
    )
    for slot, law, shape in slots:
        if law is not None and (law.format, law.shape) != ("", shape):
            right = f"give no format, and the shape {shape!r}"
            raise InputError(f"{where}: {slot}", f"is a law of {law.name!r}", right)
    for law in header.all_laws:
        place = f"{where}: law {law.name}"
        if names.count(law.name) > 1:
            raise InputError(place, "is there more than once", REMEDY)
        check_form(law, place)
        for regime in law.regimes:
            check_rates(f"{law.name}.{regime.first_row}.", constants, where)


def check_form(law: LawForm, place: str) -> None:
    """Refuse a law whose regimes do not cover all rows, or that no kernel can have."""
    first_rows = [regime.first_row for regime in law.regimes]
    if not first_rows or first_rows[0] != 1 or first_rows != sorted(set(first_rows)):
        raise InputError(place, f"has regimes from rows {first_rows}", "start at 1, rise")
    tiles = [each.tile_rows for each in law.regimes if each.tile_rows is not None]
    rules = (
        (not law.format or law.shape in set(Shape), "has an unknown shape"),
        (law.overlap is None or law.overlap >= 1.0, "has an overlap below 1"),
        (0.0 < law.depth_power <= 1.0, "grows by an impossible power of depth"),
        (law.rows_measured >= 1, "was measured at no row"),
        (
            all(1.0 <= rows <= LARGEST_TILE_ROWS for rows in tiles),
            f"has a tile below one row or beyond {LARGEST_TILE_ROWS}",
        ),
        (
            all(
                0.0 <= each.reread <= 1.0 and 0.0 <= each.fill_columns <= MOST_COLUMNS
                for each in law.regimes
            ),
            "reads again or fills by an impossible share",
        ),
    )
    for holds, wrong in rules:
        if not holds:
            raise InputError(place, wrong, REMEDY)


def check_rates(prefix: str, constants: Mapping[str, Constant], where: str) -> None:
    """Refuse a regime without a rate, or with one, drawn ones included, that takes for ever."""
    names = [prefix + rate for rate in ("bandwidth_bytes_per_s", "flops_per_s")]
    rates = [constants[name] for name in names if name in constants]
    if not rates or any(min([rate.value, *rate.draws.tolist()]) < 1.0 for rate in rates):
        raise InputError(f"{where}: constants.{prefix}*", "gives no rate of 1 or more", REMEDY)
