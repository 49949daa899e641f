"""Which kernel MLX attends with: its own for a few query rows, or a library's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard, TypeVar, final

import numpy as np

from model.machine.kernels.releases import priced_release
from model.machine.kernels.tables import BACK_ENDS, lines_for
from model.units import Quantity

Rule = TypeVar("Rule")
OFF = "0"
ALIGNED_KEYS = 8
"""As many numbers of 16 bits fit into the 16 bytes that fast products want their rows aligned to:
over a multiple of so many keys scores that are a matrix in memory are multiplied fastest."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorAttention:
    """The rule of a kernel that gives each query row and head its own threadgroup.

    Its cost grows with every row; from the next row on a kernel for many rows does the work, or
    none that is fused (`fused_beyond`): scores are then a matrix in memory, and its products walk
    tiles of `beyond_tile_rows`. Beyond a context of `one_pass_to_context` the cache is cut up
    between threadgroups, so that it takes two passes.
    """

    most_rows: int
    head_dims: tuple[int, ...]
    most_query_rows: int | None = None
    fused_beyond: bool = True
    beyond_tile_rows: float = 1.0
    one_pass_to_context: int | None = None

    def last_row(self, *, query_heads_per_kv_head: int, head_dim: int) -> int:
        """The most query rows it serves; 0 where it never does.

        >>> vector = VectorAttention(most_rows=8, most_query_rows=32, head_dims=(64, 128))
        >>> [vector.last_row(query_heads_per_kv_head=heads, head_dim=128) for heads in (4, 8, 48)]
        [8, 4, 0]
        """
        if head_dim not in self.head_dims:
            return 0
        if self.most_query_rows is None:
            return self.most_rows
        return min(self.most_rows, self.most_query_rows // query_heads_per_kv_head)


def leaves_scores(vector: VectorAttention | None) -> TypeGuard[VectorAttention]:
    """Whether the rows that the kernel does not take are attended with by no one kernel."""
    return vector is not None and not vector.fused_beyond


def is_unfused(
    vector: VectorAttention | None,
    *,
    rows: Quantity,
    sequences: int,
    query_heads_per_kv_head: int,
    head_dim: int,
) -> Quantity:
    """Whether attention is several kernels, with the scores as a matrix in memory.

    It is that of a batch, whose mask is an array, and of rows that no kernel takes. Broadcasts
    over rows.
    """
    if sequences > 1 or not leaves_scores(vector):
        return sequences > 1
    last_row = vector.last_row(query_heads_per_kv_head=query_heads_per_kv_head, head_dim=head_dim)
    return np.greater(rows, last_row)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryAttention:
    """When a single row goes to a library, whose kernels cost the host more to submit.

    That is from a context of `one_row_from_context` on. Several rows always do, which is in what
    several rows cost; a batch does not, for its mask is an array. Where the environment variable
    `switch` is 0, nothing goes to the library.
    """

    one_row_from_context: int
    switch: str

    def serves(self, *, rows: Quantity, context: Quantity, sequences: int) -> Quantity:
        """Whether a pass of one row is served so; broadcasts over rows and contexts.

        >>> cudnn = LibraryAttention(one_row_from_context=256, switch="MLX_CUDA_USE_CUDNN_SDPA")
        >>> [bool(cudnn.serves(rows=rows, context=context, sequences=1))
        ...  for rows, context in ((1, 128), (2, 4096), (1, 4096))]
        [False, False, True]
        """
        alone = np.logical_and(np.equal(rows, 1), sequences == 1)
        return np.logical_and(alone, np.greater_equal(context, self.one_row_from_context))


def library_attention(
    back_end: str, runtime: str, variables: Mapping[str, str]
) -> LibraryAttention | None:
    """The rule of a back end and runtime; None where no library serves attention.

    `variables` are the environment variables of MLX's process.
    """
    rule = _rule(LibraryAttention, "library_attention", back_end, runtime)
    return None if rule is None or variables.get(rule.switch) == OFF else rule


def vector_attention(
    back_end: str, runtime: str, variables: Mapping[str, str]
) -> VectorAttention | None:
    """The rule of a back end and runtime; None where the tables have none.

    Nor has it one where a library takes what has several rows.
    """
    if library_attention(back_end, runtime, variables) is not None:
        return None
    return _rule(VectorAttention, "attention", back_end, runtime)


def _rule(kind: type[Rule], table: str, back_end: str, runtime: str) -> Rule | None:
    release = priced_release(runtime)
    if release is None or back_end not in BACK_ENDS:
        return None
    return next(iter(lines_for(kind, table, back_end, release, None)), None)
