"""The price of attention that no one kernel does: the scores are a matrix in memory.

So it is with a batch, whose mask is an array, and with rows that MLX's CUDA kernel does not take.
A product with the keys writes the scores, a mask and a softmax read and write them, and a product
with the values reads them. The products are three to ten times as fast over a multiple of 8 keys as
over an odd number: a growing cache meets all, and the law is of their mean; where a pass stays at
one context another law is. Source: mlx 0.32, `fast.cpp`, the fallback of
`scaled_dot_product_attention`. Priced only where a profile has such a law.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.machine.kernels.attention import ALIGNED_KEYS
from model.machine.machine import Machine
from model.machine.row_law import Product, ProductTime
from model.network.mixer import AbstractMixer, Attention
from model.units import Quantity

SCORE_PASSES = 6
"""How often a score goes through memory: written by the product with the keys, read and written by
the mask, read and written by the softmax, read by the product with the values."""


def scores_time(
    machine: Machine,
    mixer: Attention,
    element_bytes: float,
    *,
    rows: Quantity,
    context: Quantity,
    sequences: int,
    keys: Quantity | None,
) -> ProductTime | None:
    """Attention through scores in memory; None where a profile has no law for it.

    `keys` are what each row attends to where the context stays, and None where it grows.
    """
    law, best = machine.unfused_attention, machine.aligned_attention
    if law is None:
        return None
    scores = scores_product(mixer, context, element_bytes, sequences)
    time = law.time(scores, rows)
    if keys is not None and best is not None:
        is_aligned = np.equal(np.mod(keys, ALIGNED_KEYS), 0)
        time = either(is_aligned, best.time(scores, rows), time)
    moved_s = machine.device.score_s * (sequences * rows * mixer.query_heads * scores.depth)
    return replace(time, memory_s=time.memory_s + moved_s, total_s=time.total_s + moved_s)


def unfused_rows(
    machine: Machine, mixer: AbstractMixer | None, rows: Quantity, sequences: int
) -> Quantity:
    """Whether no one kernel attends with rows of each sequence; broadcasts over rows.

    Only of grouped-query attention over a cache in 16 bits: all others have kernels of their own.
    """
    if not isinstance(mixer, Attention):
        return False
    return machine.unfused(
        rows=rows,
        sequences=sequences,
        query_heads_per_kv_head=mixer.query_heads // mixer.kv_heads,
        head_dim=mixer.head_dim,
    )


def scores_product(
    mixer: Attention, context: Quantity, element_bytes: float, sequences: int
) -> Product:
    """Attention where no one kernel does it: what is read is the scores, and not the cache.

    Its law has two terms. One is by the score and the tile of rows, however wide the heads are: the
    product with the keys fills the device, with a block of threads for each head and some keys.
    The other is by the multiplication: that with the values has few blocks, which walk all keys.
    Each query head reads the keys and values that it shares with others anew. What the scores of
    each row cost in memory, which they go through `SCORE_PASSES` times, is `Device.score_s`.
    """
    _, depth, columns = mixer.cache_read(context, element_bytes)
    scores = sequences * mixer.query_heads * depth
    return Product(
        read_bytes=SCORE_PASSES * element_bytes * scores, depth=depth, columns=sequences * columns
    )


def either(which: Quantity, one: ProductTime, other: ProductTime) -> ProductTime:
    """One time where `which` is true and the other elsewhere."""
    return ProductTime(
        memory_s=np.where(which, one.memory_s, other.memory_s),
        arithmetic_s=np.where(which, one.arithmetic_s, other.arithmetic_s),
        total_s=np.where(which, one.total_s, other.total_s),
    )
