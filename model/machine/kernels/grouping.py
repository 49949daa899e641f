"""When gathered experts run in tiles of rows instead of one product a (row, expert) pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.catalog import kernel_data
from model.machine.kernels.releases import priced_release
from model.machine.kernels.tables import BACK_ENDS, lines_for
from model.typed_json import record_from_json
from model.units import Array, Quantity

LLAMA_CPP = "llama.cpp"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The rows, the pairs, and the pairs for each expert, from which rows share a tile."""

    least_pairs: int
    least_pairs_per_expert: int
    tile_rows: int
    least_rows: int = 1

    def groups(self, *, pairs: Quantity, num_experts: int, rows: Quantity = 2**31) -> Array:
        """Whether so many pairs over `num_experts` experts are grouped; broadcasts over pairs.

        A model of 256 experts, 8 of them a token, needs 128 tokens in one pass:

        >>> metal = Grouping(least_pairs=64, least_pairs_per_expert=4, tile_rows=16)
        >>> [bool(metal.groups(pairs=8 * tokens, num_experts=256)) for tokens in (127, 128)]
        [False, True]
        """
        floor = max(self.least_pairs, self.least_pairs_per_expert * num_experts)
        enough_rows = np.greater_equal(rows, self.least_rows)
        return np.logical_and(np.greater_equal(pairs, floor), enough_rows)


def grouping(back_end: str, runtime: str) -> Grouping | None:
    """The rule of a back end and runtime, MLX or llama.cpp; None where rows are never grouped.

    CUDA and CPU have none in the tables: both were linear in pairs as far as was measured, an
    H200 to 1,024 pairs over 128 experts.
    """
    if runtime.startswith(LLAMA_CPP):
        rules = kernel_data(LLAMA_CPP)["grouping"]
        return record_from_json(Grouping, rules[back_end], runtime) if back_end in rules else None
    release = priced_release(runtime)
    if release is None or back_end not in BACK_ENDS:
        return None
    return next(iter(lines_for(Grouping, "grouping", back_end, release, None, least_rows=1)), None)
