"""How many query rows MLX's vector attention serves before another kernel takes over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.machine.kernels.releases import priced_release
from model.machine.kernels.tables import BACK_ENDS, lines_for


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorAttention:
    """The rule of a kernel that gives each query row and head its own threadgroup.

    Its cost grows with every row; from the next row on a kernel for many rows, or none that is
    fused, does the work.
    """

    most_rows: int
    most_query_rows: int
    head_dims: tuple[int, ...]

    def last_row(self, *, query_heads_per_kv_head: int, head_dim: int) -> int:
        """The most query rows it serves; 0 where it never does.

        >>> vector = VectorAttention(most_rows=8, most_query_rows=32, head_dims=(64, 128))
        >>> [vector.last_row(query_heads_per_kv_head=heads, head_dim=128) for heads in (4, 8, 48)]
        [8, 4, 0]
        """
        if head_dim not in self.head_dims:
            return 0
        return min(self.most_rows, self.most_query_rows // query_heads_per_kv_head)


def vector_attention(back_end: str, runtime: str) -> VectorAttention | None:
    """The rule of a back end and runtime; None where the tables have none."""
    release = priced_release(runtime)
    if release is None or back_end not in BACK_ENDS:
        return None
    return next(iter(lines_for(VectorAttention, "attention", back_end, release, None)), None)
