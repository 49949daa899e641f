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
    machine: Machine, siblings: Siblings, formats: Formats, rows: Quantity
) -> ProductTime:
    """Price matrices that read the same input as one product of all their columns."""
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
    return law.time(Product(read_bytes=read_bytes, depth=depth, columns=columns), rows)


def experts_times(
    machine: Machine, experts: Experts, formats: Formats, rows: Quantity
) -> list[ProductTime]:
    """Price a router and its routed experts: bytes of the distinct ones, arithmetic of all pairs.

    Every (row, expert) pair is a product of one row, whatever the regimes of dense matrices,
    until the runtime groups the pairs of an expert into tiles.
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
        pair = law.time(one, 1)
        memory_s, arithmetic_s = distinct * pair.memory_s, pairs * pair.arithmetic_s
        if machine.grouping is not None:
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
