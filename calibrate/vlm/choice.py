"""Which rows of a pass are fixed where a number of them is given, and how many were."""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import mlx.core as mx


def surest(confidence: mx.array, open_rows: mx.array, count: int) -> mx.array:
    """The `count` rows that are surest among those still open, or all where fewer are."""
    order = mx.argsort(-mx.where(open_rows, confidence, -1.0), axis=-1)
    rank = mx.argsort(order, axis=-1)
    return open_rows & (rank < count)


def how_many(rows: mx.array) -> int:
    """How many of the rows are marked; waits for them."""
    marked: int = rows.sum().tolist()  # pyright: ignore[reportAssignmentType]
    return marked
