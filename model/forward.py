r"""The price of a forward pass: M rows through every layer, at a context.

.. math::

   t_{device} = \underbrace{t_{pass} + \sum_{layers} t_{layer} + \sum_{products} t_{kernel}}
                _{dispatch}
              + \underbrace{\sum t_{memory}(W)}_{weights} + \underbrace{\sum t_{memory}(KV)}_{kv}
              + \underbrace{\sum (t_{product} - t_{memory}) + M (L h\, e + V l)}_{arithmetic}

Matrices that read the same input (query, key and value; gate and up) run side by side on the
devices MLX supports, so they are priced as one product with their columns added. The head is
read at every pass; an untied input embedding is a gather of M rows and costs nothing. Arithmetic
is what a pass takes beyond reading and dispatch: of a perfectly memory-bound pass only what grows
with the rows themselves (element-wise operations, sampling).

The estimate lies between two bounds: perfect overlap of reading and arithmetic in every product,
and none at all (at most twice as long).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import final

import numpy as np

from model.architecture import Attention, Experts, Siblings
from model.checkpoint import Checkpoint, Formats
from model.machine import Machine
from model.moe import unique_experts
from model.overlap import overlapped
from model.row_law import Product, ProductTime, shape_of
from model.units import Quantity


class Bound(StrEnum):
    """What takes the largest share of the time."""

    MEMORY = "memory"
    COMPUTE = "compute"
    OVERHEAD = "overhead"
    DRAFT = "draft"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PassCost:
    """Device time of one pass in named parts that sum to `device_s`, and what the host spends.

    Everything in seconds; arrays broadcast over rows, contexts or draws.
    """

    weights_s: Quantity
    kv_s: Quantity
    arithmetic_s: Quantity
    dispatch_s: Quantity
    lower_s: Quantity
    upper_s: Quantity
    build_s: Quantity
    submit_s: Quantity

    @property
    def device_s(self) -> Quantity:
        """Time the device is busy with this pass."""
        return self.weights_s + self.kv_s + self.arithmetic_s + self.dispatch_s

    @property
    def host_s(self) -> Quantity:
        """Time the host is busy with this pass."""
        return self.build_s + self.submit_s


def forward_pass(
    checkpoint: Checkpoint, machine: Machine, *, rows: Quantity, context: Quantity
) -> PassCost:
    """Price one pass of `rows` tokens with `context` tokens in the cache.

    Raises:
        InputError: the machine has no row law for one of the checkpoint's weight formats.
    """
    bare = cacheless_pass(checkpoint, machine, rows)
    caches = [
        (count, attention_time(machine, layer.attention, rows, context))
        for layer, count, _ in checkpoint.layer_kinds
    ]
    kv_s = total(caches, lambda time: time.memory_s)
    beyond_s = total(caches, lambda time: time.total_s) - kv_s
    lower_s = total(caches, lambda time: np.maximum(time.memory_s, time.arithmetic_s))
    upper_s = total(caches, lambda time: time.memory_s + time.arithmetic_s)
    return replace(
        bare,
        kv_s=kv_s,
        arithmetic_s=bare.arithmetic_s + beyond_s,
        lower_s=bare.lower_s + lower_s,
        upper_s=bare.upper_s + upper_s,
    )


def cacheless_pass(checkpoint: Checkpoint, machine: Machine, rows: Quantity) -> PassCost:
    """A pass without its caches: the same at every context, so it is kept for whole rows."""
    if isinstance(rows, int):
        return _kept_pass(checkpoint, machine, rows)
    return _cacheless_pass(checkpoint, machine, rows)


def _cacheless_pass(checkpoint: Checkpoint, machine: Machine, rows: Quantity) -> PassCost:
    architecture, device, host = checkpoint.architecture, machine.device, machine.host
    head = siblings_time(machine, checkpoint.head_siblings, checkpoint.head_formats, rows)
    weights: list[tuple[int, ProductTime]] = [(1, head)]
    kernels = 1
    for layer, count, formats in checkpoint.layer_kinds:
        products = [siblings_time(machine, each, formats, rows) for each in layer.siblings]
        if layer.experts is not None:
            products += experts_times(machine, layer.experts, formats, rows)
        weights += [(count, time) for time in products]
        # Attention is one more kernel of each layer, whatever its cache costs.
        kernels += count * (len(products) + 1)
    layers = len(architecture.layers)
    several = np.greater(rows, 1)
    layer_s = device.layer_s + np.where(several, device.more_rows_layer_s, 0.0)
    dispatch_s = device.pass_s + layers * layer_s + kernels * device.kernel_s
    elements_s = rows * (
        layers * architecture.hidden_size * device.element_s
        + architecture.vocab_size * device.logit_s
    )
    fixed_s = dispatch_s + elements_s
    weights_s = total(weights, lambda time: time.memory_s)
    reshape_s = np.where(several, host.reshape_s, 0.0)
    submitted_s = submission_s(checkpoint, machine, rows)
    return PassCost(
        weights_s=weights_s,
        kv_s=0.0,
        arithmetic_s=total(weights, lambda time: time.total_s) - weights_s + elements_s,
        dispatch_s=dispatch_s,
        lower_s=fixed_s + total(weights, lambda t: np.maximum(t.memory_s, t.arithmetic_s)),
        upper_s=fixed_s + total(weights, lambda time: time.memory_s + time.arithmetic_s),
        build_s=layers * host.build_layer_s + host.build_pass_s + reshape_s,
        submit_s=layers * host.submit_layer_s + host.submit_pass_s + submitted_s,
    )


_kept_pass = lru_cache(maxsize=256)(_cacheless_pass)


def submission_s(checkpoint: Checkpoint, machine: Machine, rows: Quantity) -> Quantity:
    """What submitting the matrix products of a pass costs the host; a gathered one counts once."""
    (head_format,) = checkpoint.head_formats.values()
    seconds = machine.submission(head_format).at(rows)
    for _, count, formats in checkpoint.layer_kinds:
        for stored_as, matrices in Counter(formats.values()).items():
            seconds = seconds + count * matrices * machine.submission(stored_as).at(rows)
    return seconds


def siblings_time(
    machine: Machine, siblings: Siblings, formats: Formats, rows: Quantity
) -> ProductTime:
    """Price matrices that read the same input as one product of all their columns."""
    matrices = siblings.matrices
    columns = sum(matrix.columns for matrix in matrices)
    depth = matrices[0].depth
    stored_as = formats[matrices[0].name]
    read_bytes = sum(formats[each.name].matrix_bytes(each.columns, depth) for each in matrices)
    law = machine.law(stored_as, shape_of(depth=depth, columns=columns))
    return law.time(Product(read_bytes=read_bytes, depth=depth, columns=columns), rows)


def experts_times(
    machine: Machine, experts: Experts, formats: Formats, rows: Quantity
) -> list[ProductTime]:
    """Price a router and its routed experts: bytes of the distinct ones, arithmetic of all pairs.

    Every (row, expert) pair is a product of one row, whatever the regimes of dense matrices.
    """
    router = Siblings(name="router", matrices=(experts.router,))
    times = [siblings_time(machine, router, formats, rows)]
    distinct = unique_experts(num_experts=experts.num_experts, top_k=experts.top_k, rows=rows)
    pairs = rows * experts.top_k
    for siblings in experts.siblings:
        columns = sum(matrix.columns for matrix in siblings.matrices)
        depth = siblings.matrices[0].depth
        stored_as = formats[siblings.matrices[0].name]
        law = machine.law(stored_as, shape_of(depth=depth, columns=columns))
        one = law.time(
            Product(
                read_bytes=stored_as.matrix_bytes(columns, depth), depth=depth, columns=columns
            ),
            1,
        )
        memory_s, arithmetic_s = distinct * one.memory_s, pairs * one.arithmetic_s
        total_s = overlapped(memory_s, arithmetic_s, law.overlap)
        times.append(ProductTime(memory_s=memory_s, arithmetic_s=arithmetic_s, total_s=total_s))
    return times


def attention_time(
    machine: Machine, attention: Attention, rows: Quantity, context: Quantity
) -> ProductTime:
    """Price one layer's attention: the cache is the matrix, the context its depth."""
    cached = attention.cached_tokens(context)
    cache = Product(
        read_bytes=cached * attention.kv_bytes_per_token(machine.activation_bytes),
        depth=cached,
        columns=2.0 * attention.query_heads * attention.head_dim,
    )
    return machine.attention.time(cache, rows)


def total(
    counted: list[tuple[int, ProductTime]], cost_s: Callable[[ProductTime], Quantity]
) -> Quantity:
    """Sum one cost over products that each occur a number of times."""
    seconds: Quantity = 0.0
    for count, time in counted:
        seconds = seconds + count * cost_s(time)
    return seconds
