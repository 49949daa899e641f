"""Speed and memory over the context as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.commands.context import Followed, OverContext
from model.units import GB


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRow:
    """A strategy's tok/s at a context, with its 90 % interval."""

    label: str
    strategy: str
    context: int
    tokens_per_s: float
    low_tokens_per_s: float
    high_tokens_per_s: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """Gigabytes of one part of a working set at a context; parts of a context sum to all of it."""

    label: str
    context: int
    part: str
    size_gb: float
    limit_gb: float


PARTS = ("target's weights", "draft's weights", "target's cache", "draft's cache", "buffers")
"""In the order in which they are stacked."""


def speed_rows(found: OverContext) -> tuple[SpeedRow, ...]:
    """A row for each strategy and context at which it fits."""
    rows: list[SpeedRow] = []
    for each in found.followed:
        for context, prediction in zip(each.contexts, each.predictions, strict=True):
            speed, interval = prediction.tokens_per_s, prediction.interval_90
            if speed is None or interval is None:
                continue
            rows.append(
                SpeedRow(
                    label=each.label,
                    strategy=each.strategy,
                    context=context,
                    tokens_per_s=speed,
                    low_tokens_per_s=interval[0],
                    high_tokens_per_s=interval[1],
                )
            )
    return tuple(rows)


def memory_rows(followed: Followed) -> tuple[MemoryRow, ...]:
    """A row for each part and context; a part that nothing of is needed at any is left out."""
    rows = [
        MemoryRow(
            label=followed.label,
            context=context,
            part=part,
            size_gb=size_bytes / GB,
            limit_gb=memory.memory.limit_bytes / GB,
        )
        for context, memory in zip(followed.contexts, followed.memory, strict=True)
        for part, size_bytes in zip(
            PARTS,
            (
                memory.weights_bytes,
                memory.draft_weights_bytes,
                memory.cache_bytes,
                memory.draft_cache_bytes,
                memory.buffer_bytes,
            ),
            strict=True,
        )
    ]
    needed = {row.part for row in rows if row.size_gb > 0.0}
    return tuple(row for row in rows if row.part in needed)
