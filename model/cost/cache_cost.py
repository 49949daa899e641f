"""The price of the past in a pass: reading caches and states.

Attention in 16 bits is one fused kernel that obeys a row law with the cache as its matrix, or two
laws where it takes two passes over a long one. Four things are not that kernel:

* A quantized cache (`mlx_lm` with `kv_bits`) is read by two quantized products for each query
  head, so the query heads of a group each read the keys and values they share.
* A latent cache is attended to directly by one row; several rows unfold it first, at the price of
  a product whose rows are the cached tokens (:class:`model.network.mixer.LatentAttention`).
* Where no one kernel attends, the scores are a matrix in memory
  (:mod:`model.cost.unfused_attention`).
* Attention over a selection reads an indexer's keys, then what was chosen. Each of several rows
  chooses for itself and so is a pass over the cache of its own: mlx-vlm takes them one by one.

Sources: mlx-lm 0.32.2, `models/base.py` and `models/cache.py`. The first two prices are derived
from the kernels' own laws and were not measured as a whole.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.cost.unfused_attention import either, scores_time, unfused_rows
from model.cost.weight_cost import siblings_time
from model.machine.machine import Machine
from model.machine.row_law import Product, ProductTime, RowLaw
from model.network.checkpoint import Checkpoint
from model.network.matrix import Siblings
from model.network.mixer import (
    AbstractMixer,
    Attention,
    CacheRead,
    LatentAttention,
    Recurrence,
)
from model.network.selection import SelectedAttention
from model.units import Quantity


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
    unfused = unfused_rows(machine, mixer, rows, sequences)
    if not isinstance(mixer, Attention) or not np.any(unfused):
        return fused
    scored = scores_time(
        machine, mixer, width, rows=rows, context=context, sequences=sequences, keys=keys
    )
    return fused if scored is None else either(unfused, scored, fused)


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


def cache_product(mixer: Attention, context: Quantity, element_bytes: float) -> Product:
    """The cache of grouped-query attention as the matrix of its law.

    The context is its depth, and each head's query and value widths are its columns.
    """
    read_bytes, depth, columns = mixer.cache_read(context, element_bytes)
    return Product(read_bytes=read_bytes, depth=depth, columns=columns)


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
