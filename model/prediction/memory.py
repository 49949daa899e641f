"""Memory: what must be resident, against what the device may hold.

Beyond the recommended working set macOS unwires and swaps weights, and decoding falls by an
order of magnitude or two (mlx-examples issue 1069: 4.7 against 0.23 tok/s). No bandwidth model
holds there, so the answer is "does not fit", never bytes / bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.units import GB, GIB

BUFFER_BYTES = 0.3 * GIB
"""Activations, command buffers and the allocator's slack; mlx-lm keeps about this much."""

WORKING_SET_SHARE = 2.0 / 3.0
"""Share of memory a device may hold where it does not report its limit (16 GB Mac: 10.67 GiB)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Feasibility:
    """Whether a working set fits, and by how much, in bytes."""

    working_set_bytes: float
    limit_bytes: float

    @property
    def fits(self) -> bool:
        """True when everything can stay resident."""
        return self.working_set_bytes <= self.limit_bytes

    @property
    def reason(self) -> str:
        """One sentence with the three numbers."""
        need, limit = self.working_set_bytes / GB, self.limit_bytes / GB
        if self.fits:
            return f"needs {need:.1f} of {limit:.1f} GB"
        return (
            f"does not fit: needs {need:.1f} GB of {limit:.1f} GB, {need - limit:.1f} GB too much"
        )


def feasibility(
    residents: Iterable[tuple[Checkpoint, int]],
    machine: Machine,
    *,
    context: float,
    shared_cache_bytes: float = 0.0,
) -> Feasibility:
    """Weights and caches of every resident, and buffers, against the machine's limit.

    A resident is a checkpoint and how many caches it keeps; `shared_cache_bytes` are further
    caches over weights that are already counted.
    """
    working_set_bytes = BUFFER_BYTES + shared_cache_bytes
    for checkpoint, caches in residents:
        cache_bytes = float(checkpoint.kv_cache_bytes(context))
        working_set_bytes += checkpoint.total_bytes + caches * cache_bytes
    limit = machine.recommended_working_set_bytes
    limit_bytes = float(limit) if limit else WORKING_SET_SHARE * machine.memory_bytes
    return Feasibility(working_set_bytes=working_set_bytes, limit_bytes=limit_bytes)


def check_fits(
    checkpoints: Sequence[Checkpoint], machine: Machine, *, context: float, caches: int = 1
) -> None:
    """Refuse checkpoints that do not fit together: no speed of theirs could be told.

    Each keeps as many `caches`, one for each sequence.

    Raises:
        InputError: the working set is larger than the machine's limit.
    """
    memory = feasibility([(each, caches) for each in checkpoints], machine, context=context)
    if not memory.fits:
        named = [each.label for each in checkpoints]
        right = "give fewer bits, a smaller model or a shorter context"
        raise InputError(f"{' beside '.join(named)} on {machine.name}", memory.reason, right)
