"""When MLX runs gathered experts in tiles of rows instead of one product a (row, expert) pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.machine.kernels.releases import priced_release
from model.machine.kernels.tables import BACK_ENDS, lines_for
from model.units import Array, Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The pairs, and the pairs for each expert there is, from which rows share a tile."""

    least_pairs: int
    least_pairs_per_expert: int
    tile_rows: int

    def groups(self, *, pairs: Quantity, num_experts: int) -> Array:
        """Whether so many pairs over `num_experts` experts are grouped; broadcasts over pairs.

        A model of 256 experts, 8 of them a token, needs 128 tokens in one pass:

        >>> metal = Grouping(least_pairs=64, least_pairs_per_expert=4, tile_rows=16)
        >>> [bool(metal.groups(pairs=8 * tokens, num_experts=256)) for tokens in (127, 128)]
        [False, True]
        """
        floor = max(self.least_pairs, self.least_pairs_per_expert * num_experts)
        return np.greater_equal(pairs, floor)


def grouping(back_end: str, runtime: str) -> Grouping | None:
    """The rule of a back end and runtime; None where rows are never grouped.

    CUDA and CPU have none in the tables: both were linear in pairs as far as was measured, an
    H200 to 1,024 pairs over 128 experts.
    """
    release = priced_release(runtime)
    if release is None or back_end not in BACK_ENDS:
        return None
    return next(iter(lines_for(Grouping, "grouping", back_end, release, None)), None)
