r"""The price of the past in a pass: reading caches and states, and making room for more.

Attention in 16 bits is one fused kernel that obeys a row law with the cache as its matrix, or two
laws where it takes two passes over a long one. Five things are not that kernel:

* A quantized cache (`mlx_lm` with `kv_bits`) is read by two quantized products for each query
  head, so the query heads of a group each read the keys and values they share.
* A latent cache is attended to directly by one row; several rows unfold it first, at the price of
  a product whose rows are the cached tokens (:class:`model.network.mixer.LatentAttention`).
* Where no one kernel attends (a batch, whose mask is an array; rows that MLX's CUDA kernel does
  not take), the scores are a matrix in memory, and a law of their own prices it if measured. Its
  products are three to ten times as fast over a multiple of 8 keys as over an odd number: a growing
  cache meets all, and the law is of their mean; where a pass stays at one context another law is.
* Attention over a selection reads an indexer's keys, then what was chosen. Each of several rows
  chooses for itself and so is a pass over the cache of its own: mlx-vlm takes them one by one.
* A cache grows by copying itself: mlx-lm allocates 256 tokens at a time, and every time the whole
  of a layer's cache is read and written, which is

.. math:: t_{growth} = \frac{2\, \text{bytes}}{256\, B} \text{ per token}

A compressed pool is copied whenever an entry is added (mlx-vlm 0.7.10, `PoolingCache`).

Sources: mlx-lm 0.32.2, `models/base.py` and `models/cache.py`. The first two prices are derived
from the kernels' own laws and were not measured as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from model.cost.weight_cost import siblings_time
from model.machine.kernels.attention import ALIGNED_KEYS
from model.machine.machine import Machine
from model.machine.row_law import Product, ProductTime, RowLaw
from model.network.checkpoint import Checkpoint
from model.network.matrix import Siblings
from model.network.mixer import (
    AbstractMixer,
    Attention,
    CacheRead,
    LatentAttention,
    MixerKind,
    Recurrence,
)
from model.network.selection import SelectedAttention
from model.units import Quantity

SCORE_PASSES = 6
"""How often a score goes through memory: written by the product with the keys, read and written by
the mask, read and written by the softmax, read by the product with the values."""
GROWTH_TOKENS = 256
"""Tokens by which a cache of mlx-lm grows."""


def cache_times(
    checkpoint: Checkpoint,
    machine: Machine,
    *,
    rows: Quantity,
    context: Quantity,
    sequences: int = 1,
    keys: Quantity | None = None,
) -> list[tuple[int, ProductTime]]:
    """What each kind of layer pays for its past, and how often; `rows` are of each sequence.

    `keys` are what each row attends to in every such pass, by which scores are aligned in memory;
    None where the context is the middle of a growing one.
    The matrices that unfold a latent cache are counted here, with the cache.
    """
    loops = checkpoint.architecture.loops
    times: list[tuple[int, ProductTime]] = []
    for layer, repeats, formats in checkpoint.layer_kinds:
        mixer, count = layer.mixer, loops * repeats
        if mixer is None:
            continue
        if isinstance(mixer, LatentAttention) and mixer.unfolding is not None:
            unfolded_rows = sequences * np.where(np.greater(rows, 1), context, rows)
            for matrix in mixer.unfolding.matrices:
                # One unfolds queries or keys, the other values: they do not read the same input.
                alone = Siblings(name=matrix.name, matrices=(matrix,))
                unfolding = siblings_time(machine, alone, formats, np.maximum(1, unfolded_rows))
                times.append((count, unfolding))
        times.append((count, past_time(checkpoint, machine, mixer, rows, context, sequences, keys)))
        if isinstance(mixer, SelectedAttention) and mixer.indexer is not None:
            read = mixer.indexer.read(context, checkpoint.cache_element_bytes)
            times.append((count, chosen_time(machine, mixer, read, rows, sequences)))
    return times


def past_time(
    checkpoint: Checkpoint,
    machine: Machine,
    mixer: AbstractMixer,
    rows: Quantity,
    context: Quantity,
    sequences: int,
    keys: Quantity | None,
) -> ProductTime:
    """One layer's attention, or its state, for `rows` of each sequence."""
    if checkpoint.cache_format is not None and isinstance(mixer, Attention):
        return quantized_cache_time(checkpoint, machine, mixer, rows, context, sequences)
    width = checkpoint.cache_element_bytes
    read_bytes, depth, columns = mixer.cache_read(context, width)
    if isinstance(mixer, Recurrence):
        # Rows follow each other inside one kernel: they add to the arithmetic, not to the reading.
        state = Product(
            read_bytes=sequences * read_bytes, depth=rows * depth, columns=sequences * columns
        )
        return machine.attention.time(state, 1)
    if isinstance(mixer, SelectedAttention):
        several = np.greater(rows, 1)
        chosen = mixer.chosen_read(context, width)
        read = CacheRead(
            read_bytes=np.where(several, chosen.read_bytes, read_bytes),
            depth=np.where(several, chosen.depth, depth),
            columns=columns,
        )
        return chosen_time(machine, mixer, read, rows, sequences)
    if isinstance(mixer, LatentAttention) and mixer.unfolding is not None:
        unfolded = mixer.unfolded_read(context, width)
        several = np.greater(rows, 1)
        read_bytes = np.where(several, unfolded.read_bytes, read_bytes)
        columns = np.where(several, unfolded.columns, columns)
    cache = Product(read_bytes=sequences * read_bytes, depth=depth, columns=sequences * columns)
    fused = fused_time(machine, mixer, cache, rows)
    unfused, law = unfused_rows(machine, mixer, rows, sequences), machine.unfused_attention
    if law is None or not isinstance(mixer, Attention) or not np.any(unfused):
        return fused
    scores = scores_product(mixer, context, width, sequences)
    mean, best = law.time(scores, rows), machine.aligned_attention
    if keys is not None and best is not None:
        is_aligned = np.equal(np.mod(keys, ALIGNED_KEYS), 0)
        mean = either(is_aligned, best.time(scores, rows), mean)
    moved_s = machine.device.score_s * (sequences * rows * mixer.query_heads * depth)
    return either(unfused, later(mean, moved_s), fused)


def fused_time(
    machine: Machine, mixer: AbstractMixer, cache: Product, rows: Quantity
) -> ProductTime:
    """Attention by one kernel, in one pass over the cache or in two."""
    group, head_dim = kernel_key(mixer)
    law = machine.attention_law(query_heads_per_kv_head=group, head_dim=head_dim)
    time = law.time(cache, rows)
    vector, two_pass = machine.vector_attention, machine.two_pass_attention
    if two_pass is None or vector is None or vector.one_pass_to_context is None:
        return time
    is_long = np.greater(np.add(cache.depth, rows), vector.one_pass_to_context)
    return either(is_long, two_pass.time(cache, rows), time)


def unfused_rows(
    machine: Machine, mixer: AbstractMixer | None, rows: Quantity, sequences: int
) -> Quantity:
    """Whether no one kernel attends with rows of each sequence; broadcasts over rows.

    Only of grouped-query attention over a cache in 16 bits: all others have kernels of their own.
    """
    if not isinstance(mixer, Attention):
        return False
    group, head_dim = kernel_key(mixer)
    return machine.unfused(
        rows=rows, sequences=sequences, query_heads_per_kv_head=group, head_dim=head_dim
    )


def either(which: Quantity, one: ProductTime, other: ProductTime) -> ProductTime:
    """One time where `which` is true and the other elsewhere."""
    return ProductTime(
        memory_s=np.where(which, one.memory_s, other.memory_s),
        arithmetic_s=np.where(which, one.arithmetic_s, other.arithmetic_s),
        total_s=np.where(which, one.total_s, other.total_s),
    )


def later(time: ProductTime, moved_s: Quantity) -> ProductTime:
    """A product and what is moved through memory between its parts."""
    return replace(time, memory_s=time.memory_s + moved_s, total_s=time.total_s + moved_s)


def cache_product(mixer: Attention, context: Quantity, element_bytes: float) -> Product:
    """The cache of grouped-query attention as the matrix of its law.

    The context is its depth, and each head's query and value widths are its columns.
    """
    read_bytes, depth, columns = mixer.cache_read(context, element_bytes)
    return Product(read_bytes=read_bytes, depth=depth, columns=columns)


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


def chosen_time(
    machine: Machine,
    mixer: SelectedAttention,
    read: CacheRead,
    rows: Quantity,
    sequences: int,
) -> ProductTime:
    """Rows that go over the past one after the other, each as a row alone would."""
    group, head_dim = kernel_key(mixer)
    law = machine.attention_law(query_heads_per_kv_head=group, head_dim=head_dim)
    alone = with_arithmetic(law).time(
        Product(
            read_bytes=sequences * read.read_bytes,
            depth=read.depth,
            columns=sequences * read.columns,
        ),
        1,
    )
    return ProductTime(
        memory_s=rows * alone.memory_s,
        arithmetic_s=rows * alone.arithmetic_s,
        total_s=rows * alone.total_s,
    )


def with_arithmetic(law: RowLaw) -> RowLaw:
    """A law whose first kernel has a rate of arithmetic, where need be the one of the next.

    Timings of ordinary heads do not tell one: memory binds a row of theirs. Here dozens of heads
    share a key, so that each number read is multiplied a hundred times, and MLX makes them the
    rows of one product (mlx 0.32.1, `fast.cpp`, and `matmul.cpp`, which collapses them).
    """
    first, *others = law.regimes
    rates = [each.flops_per_s for each in others if np.all(np.isfinite(each.flops_per_s))]
    if np.all(np.isfinite(first.flops_per_s)) or not rates:
        return law
    return replace(law, regimes=(replace(first, flops_per_s=rates[0]), *others))


def kernel_key(mixer: AbstractMixer) -> tuple[int, int]:
    """Query heads to each cached head, and its width: what an attention kernel is chosen by."""
    if isinstance(mixer, Attention):
        return mixer.query_heads // mixer.kv_heads, mixer.head_dim
    if isinstance(mixer, LatentAttention):
        return mixer.query_heads, mixer.latent_dim
    if isinstance(mixer, SelectedAttention):
        return mixer.query_heads // mixer.kv_heads, mixer.head_columns // 2
    raise AssertionError("a state is not read by an attention kernel")


def quantized_cache_time(
    checkpoint: Checkpoint,
    machine: Machine,
    mixer: Attention,
    rows: Quantity,
    context: Quantity,
    sequences: int,
) -> ProductTime:
    """Scores and values as two quantized products of each query head, with the cache as weights."""
    stored_as = checkpoint.cache_format
    if stored_as is None:
        raise AssertionError("a cache without a format has a fused kernel")
    group = mixer.query_heads // mixer.kv_heads
    # Keys and values are as long as the context and as wide as a head: the widest of shapes.
    law = machine.law(stored_as, depth=mixer.head_dim, columns=4 * mixer.head_dim)
    read_bytes, depth, columns = mixer.cache_read(context, checkpoint.cache_element_bytes)
    product = Product(
        read_bytes=sequences * group * read_bytes, depth=depth, columns=sequences * columns
    )
    return law.time(product, rows)


def growth_s(
    checkpoint: Checkpoint, machine: Machine, *, context: Quantity, sequences: int = 1
) -> Quantity:
    """Copying caches to make room, for each token that stays; a window that is full grows no more.

    A state never grows, nor does the cache of a machine whose attention is not bound by memory.
    """
    bytes_per_token: Quantity = 0.0
    for window, kept_bytes, copied_after in growing_caches(checkpoint):
        growing = 1.0 if window is None else np.less_equal(context, window)
        bytes_per_token = bytes_per_token + kept_bytes * growing / copied_after
    law = machine.two_pass_attention or machine.attention
    bandwidth = law.regimes[0].bandwidth_bytes_per_s
    return 2.0 * sequences * bytes_per_token * context / bandwidth


@lru_cache(maxsize=256)
def growing_caches(checkpoint: Checkpoint) -> tuple[tuple[int | None, float, int], ...]:
    """Bytes that a token adds in all layers, by window and by the tokens that a copy lasts."""
    bytes_by_cache: dict[tuple[int | None, int], float] = {}
    for layer, repeats, _ in checkpoint.layer_kinds:
        mixer = layer.mixer
        if mixer is None or mixer.kind is MixerKind.RECURRENT:
            continue
        count = checkpoint.architecture.loops * repeats
        for window, copied_after, added_bytes in _added(mixer, checkpoint.cache_element_bytes):
            key = window, copied_after
            bytes_by_cache[key] = bytes_by_cache.get(key, 0.0) + count * added_bytes
    return tuple((window, added, after) for (window, after), added in bytes_by_cache.items())


def _added(mixer: AbstractMixer, element_bytes: float) -> Iterator[tuple[int | None, int, float]]:
    """Window, tokens that a copy lasts, and bytes of a token, of each cache of a layer."""
    if not isinstance(mixer, SelectedAttention):
        window = mixer.window if isinstance(mixer, Attention) else None
        of_layer = mixer.kept_bytes(1, element_bytes) - mixer.state_bytes(element_bytes)
        yield window, GROWTH_TOKENS, float(of_layer)
        return
    if mixer.window:
        yield mixer.window, GROWTH_TOKENS, mixer.entry_elements * element_bytes
    whole = mixer.growing_elements_per_token
    for elements, tokens in mixer.pools():
        whole -= elements
        if mixer.copies_pools:
            yield None, tokens, elements * element_bytes
    yield None, GROWTH_TOKENS, whole * element_bytes
