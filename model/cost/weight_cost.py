"""The price of weight matrices in a pass: dense siblings as one product, experts pair by pair."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from model.cost.moe import unique_experts
from model.machine.kernels.grouping import Grouping
from model.machine.machine import Machine
from model.machine.overlap import overlapped
from model.machine.row_law import Product, ProductTime, RowLaw
from model.network.checkpoint import Formats
from model.network.layer import Experts
from model.network.matrix import Siblings
from model.units import Quantity


def siblings_time(
    machine: Machine,
    siblings: Siblings,
    formats: Formats,
    rows: Quantity,
    sequences: int = 1,
) -> ProductTime:
    """Price matrices that read the same input as one product of all their columns.

    `rows` are those of all `sequences` together.
    """
    matrices, columns = siblings.matrices, siblings.columns
    depth = matrices[0].depth
    read_bytes = sum(
        each.count * formats[each.name].matrix_bytes(each.columns, depth) for each in matrices
    )
    law = machine.law(
        formats[matrices[0].name],
        depth=depth,
        columns=columns,
        widest=max(each.columns for each in matrices),
    )
    product = Product(read_bytes=read_bytes, depth=depth, columns=columns)
    tiled_from = machine.tiled_apart_from(formats[matrices[0].name]) if sequences > 1 else None
    if tiled_from is None:
        return law.time(product, rows)
    return apart_time(law, product, rows, sequences, tiled_from, machine.apart_reread)


def apart_time(
    law: RowLaw,
    product: Product,
    rows: Quantity,
    sequences: int,
    tiled_from: int,
    reread: Quantity = 1.0,
) -> ProductTime:
    r"""A product whose sequences do not share tiles, from `tiled_from` rows of all together on.

    Each of the B sequences then walks the weights in tiles of its own, all at once:

    .. math:: t = t_{tiled}(W (1 + s (B - 1)), K, B N;\, M / B)

    so that narrow matrices fill the device better, and 16 sequences of one row cost sixteen
    tiles of which each has one row in use. Below, a row costs what it costs anyway. The share s of
    the weights that a further sequence reads from memory is the machine's `apart_reread`: all of
    them unless the last-level cache was seen to save some.
    Source: mlx 0.32, `cuda/quantized/quantized.cpp` and `qmm_sm80.cu`, where sequences are the
    third dimension of the launch.
    """
    together = law.time(product, rows)
    whole = Product(
        read_bytes=(1.0 + reread * (sequences - 1)) * product.read_bytes,
        depth=product.depth,
        columns=sequences * product.columns,
    )
    each = np.ceil(np.divide(rows, sequences))
    apart = law.time(whole, np.maximum(each, tiled_from))
    tiled = np.greater_equal(rows, tiled_from)
    return ProductTime(
        memory_s=np.where(tiled, apart.memory_s, together.memory_s),
        arithmetic_s=np.where(tiled, apart.arithmetic_s, together.arithmetic_s),
        total_s=np.where(tiled, apart.total_s, together.total_s),
    )


def experts_times(
    machine: Machine, experts: Experts, formats: Formats, rows: Quantity
) -> list[ProductTime]:
    """Price a router and its routed experts: bytes of the distinct ones, arithmetic of all pairs.

    Gathered experts have a law of their own where they were measured. Elsewhere every (row,
    expert) pair is a product of one row, whatever the regimes of dense matrices, until the
    runtime groups the pairs of an expert into tiles.
    """
    router = Siblings(name="router", matrices=(experts.router,))
    times = [siblings_time(machine, router, formats, rows)]
    distinct = unique_experts(experts, rows)
    pairs = rows * experts.top_k
    for siblings in experts.siblings:
        # Copies are experts here: a product is of one of them.
        columns = sum(matrix.columns for matrix in siblings.matrices)
        depth = siblings.matrices[0].depth
        stored_as = formats[siblings.matrices[0].name]
        law = machine.experts_law(stored_as, depth=depth, columns=columns)
        read_bytes = stored_as.matrix_bytes(columns, depth)
        one = Product(read_bytes=read_bytes, depth=depth, columns=columns)
        gathered = machine.gathered_law(stored_as)
        if gathered is not None:
            together = gathered.time(one, pairs)
            memory_s, arithmetic_s = distinct * together.memory_s, together.arithmetic_s
        else:
            pair = law.time(one, 1)
            memory_s, arithmetic_s = distinct * pair.memory_s, pairs * pair.arithmetic_s
        if gathered is None and machine.grouping is not None:
            slots_s = grouped_arithmetic_s(law, one, machine.grouping, pairs / distinct)
            grouped = machine.grouping.groups(
                pairs=pairs, num_experts=experts.num_experts, rows=rows
            )
            arithmetic_s = np.where(grouped, distinct * slots_s, arithmetic_s)
        total_s = overlapped(memory_s, arithmetic_s, law.overlap)
        times.append(ProductTime(memory_s=memory_s, arithmetic_s=arithmetic_s, total_s=total_s))
    return times


def grouped_arithmetic_s(
    law: RowLaw, expert: Product, grouping: Grouping, rows: Quantity
) -> Quantity:
    """Arithmetic of one expert whose `rows` are served in tiles, at the rate of the tiled kernel.

    The tile is the gathered kernel's own; its rate is that of the dense kernel for as many rows,
    on cores that the experts beside each other keep busy.
    """
    regime = replace(law.regime_at(grouping.tile_rows), fill_columns=0.0)
    tile = regime.time(expert, grouping.tile_rows, law.overlap)
    slot_s = tile.arithmetic_s / regime.slots(grouping.tile_rows)
    return np.ceil(rows / grouping.tile_rows) * grouping.tile_rows * slot_s
