"""How many copies of something a chain must walk round, so that none is read from a cache."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cold:
    """How much data is cold on a device: `enough_bytes` in total, in at most `most` copies."""

    enough_bytes: int
    most: int

    def copies(self, size_bytes: int) -> int:
        """Copies of something of this size that are cold together; at least two.

        >>> ACCELERATOR.copies(37_748_736)  # 4-bit 4096 x 16384 on a GPU
        29
        """
        return min(self.most, max(2, math.ceil(self.enough_bytes / size_bytes)))

    def total_bytes(self, size_bytes: int) -> int:
        """Bytes of all those copies and of the one they are made from."""
        return (self.copies(size_bytes) + 1) * size_bytes


ACCELERATOR = Cold(enough_bytes=2**30, most=1024)
"""Bound by memory: 1 GiB is eight times any last-level cache known (M3 Ultra 96 MB, H200 60 MB)."""

PROCESSOR = Cold(enough_bytes=64_000_000, most=4)
"""MLX's CPU back end multiplies at 1 to 2 GFLOP/s and so reads about 0.5 GB/s of weights: it is
never bound by memory, and more copies would change nothing but the price of making them."""


def cold(device: str) -> Cold:
    """What is cold on MLX's back end `device` ("metal", "cuda" or "cpu")."""
    return PROCESSOR if device == "cpu" else ACCELERATOR
