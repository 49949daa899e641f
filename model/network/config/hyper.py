"""Hyper-connections: several residual streams that each sublayer mixes into one and spreads again.

A sublayer reads m streams of the hidden size at once and computes, with one small matrix, how to
collapse them, how to spread what it made, and how to mix them (m + m + m x m numbers; DeepSeek V4's
manifold-constrained ones, arXiv 2512.24880). mlx-vlm keeps the matrix in 32 bits and never
quantizes it; here it has 16, at most 1 % of what a token of DeepSeek V4 Flash reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.network.config.fields import Fields
from model.network.matrix import Matrix, Siblings


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HyperConnections:
    """The connections of an attention and of an MLP, and the numbers of both outside matrices."""

    attention: Siblings
    mlp: Siblings
    vector_params: int


def hyper_connections(fields: Fields) -> HyperConnections:
    """What mixes the streams around both halves of a block."""
    streams, hidden = fields.size("hc_mult"), fields.size("hidden_size")
    mixed = (2 + streams) * streams
    return HyperConnections(
        attention=_mixing("attn_hc.fn", mixed, streams * hidden),
        mlp=_mixing("ffn_hc.fn", mixed, streams * hidden),
        vector_params=2 * (mixed + 3),  # a bias for each number, and three scales
    )


def hyper_head(fields: Fields) -> tuple[Siblings, int]:
    """What collapses the streams before the last norm, and its numbers outside the matrix."""
    streams, hidden = fields.size("hc_mult"), fields.size("hidden_size")
    return _mixing("model.hc_head.fn", streams, streams * hidden), streams + 1


def _mixing(name: str, columns: int, depth: int) -> Siblings:
    matrix = Matrix(name=name, columns=columns, depth=depth, quantizes=False)
    return Siblings(name=name, matrices=(matrix,))
