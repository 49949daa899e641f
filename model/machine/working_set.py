"""What macOS lets a GPU keep resident, for a memory size whose own limit nobody reported.

Metal reports `recommendedMaxWorkingSetSize`; a calibrated machine has it. For others this module
holds what Macs of each size were seen to report. It changed with macOS (16 GB: 0.667 before
macOS 26, 0.740 since), so without a release the older, smaller limit is taken: what fits in it
fits in both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import final

from model.catalog import working_set_data
from model.errors import InputError
from model.typed_json import record_from_json
from model.units import GIB

NEWER_LIMITS = 26
"""The macOS from which the newer of two limits holds."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedLimit:
    """The limit that Macs of one memory size reported."""

    memory_gib: int
    recommended_bytes: int
    source: str
    macos: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetShare:
    """The share of memory that may stay resident, and the memory size it was reported for.

    `note` says so where that is not the size asked for; empty where it is.
    """

    share: float
    reported_gib: int
    note: str


@cache
def reported_limits() -> tuple[ReportedLimit, ...]:
    """Every limit that is shipped, by memory; of two of one size the older macOS first."""
    lines = working_set_data()["limits"]
    return tuple(record_from_json(ReportedLimit, line, "working sets") for line in lines)


def working_set_share(memory_bytes: int, *, macos: int | None = None) -> WorkingSetShare:
    """The share of a Mac's memory that its GPU may keep resident.

    A size that nobody reported takes the share of the nearest one (36 GB that of 32), and a note
    says so. `macos` is the major release; None takes the older limit.

    Raises:
        InputError: there is no such memory.

    >>> working_set_share(16 * 2**30).share
    0.667
    >>> working_set_share(36 * 2**30).note
    'no Mac with 36 GiB was seen to report its limit: taken as one with 32 GiB'
    """
    if memory_bytes < 1:
        raise InputError(f"memory of {memory_bytes} bytes", "is none", "give 1 byte or more")
    gib = memory_bytes / GIB
    nearest = min(
        (limit.memory_gib for limit in reported_limits()),
        key=lambda size: abs(math.log(gib / size)),
    )
    of_size = [limit for limit in reported_limits() if limit.memory_gib == nearest]
    newer = macos is not None and macos >= NEWER_LIMITS
    chosen = of_size[-1 if newer else 0]
    note = f"no Mac with {gib:g} GiB was seen to report its limit: taken as one with {nearest} GiB"
    return WorkingSetShare(
        share=chosen.recommended_bytes / (nearest * GIB),
        reported_gib=nearest,
        note="" if math.isclose(gib, nearest) else note,
    )


def recommended_bytes(memory_bytes: int, *, macos: int | None = None) -> float:
    """The bytes that a GPU may keep resident on a Mac of this memory; see `working_set_share`.

    >>> round(recommended_bytes(16 * 2**30) / 2**20, 2)  # MiB, as every 16 GB Mac reported
    10922.67
    """
    return working_set_share(memory_bytes, macos=macos).share * memory_bytes
