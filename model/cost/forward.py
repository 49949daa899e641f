r"""The price of a forward pass: M rows through every layer, at a context.

.. math::

   t_{device} = {} & \underbrace{t_{pass} + \sum_{layers} t_{layer} + \sum_{products} t_{kernel}}
                _{dispatch}
              + \underbrace{\sum t_{memory}(W)}_{weights} + \underbrace{\sum t_{memory}(KV)}_{kv} \\
              & + \underbrace{\sum (t_{product} - t_{memory}) + M (L h\, e + V l)}_{arithmetic}

A layer with routed experts, a recurrent mixer or more than two norms costs more than
:math:`t_{layer}`, for the small kernels that only it has.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import final

import numpy as np

from model.cost.cache_cost import cache_times
from model.cost.layer_extras import (
    EXPERTS_KERNELS,
    Extras,
    choosing_effort,
    is_unfused,
    layer_extras,
    library_attention_s,
    meets_new_shape,
)
from model.cost.moe import in_batch
from model.cost.weight_cost import experts_times, siblings_time
from model.machine.machine import Machine
from model.machine.overlap import larger
from model.machine.row_law import ProductTime
from model.network.checkpoint import Checkpoint
from model.units import Quantity

SMALL_KERNELS, UNFUSED_KERNELS, PASS_KERNELS = 10, 8, 10
"""About: of a layer beside its products and attention (norms, rotary embeddings, cache, activation,
residuals), what attention takes without a kernel of its own, and what a pass takes outside its
layers (mlx-lm 0.32, `models/llama.py`)."""


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

    Everything in seconds; arrays broadcast over rows, contexts or draws. The last two are shares of
    submitting: what one commit is, and what has to be done before the device can begin.
    """

    weights_s: Quantity
    kv_s: Quantity
    arithmetic_s: Quantity
    dispatch_s: Quantity
    lower_s: Quantity
    upper_s: Quantity
    build_s: Quantity
    submit_s: Quantity
    commit_share: Quantity = 0.0
    begin_share: Quantity = 0.0

    @property
    def device_s(self) -> Quantity:
        """Time the device is busy with this pass."""
        return self.weights_s + self.kv_s + self.arithmetic_s + self.dispatch_s

    @property
    def host_s(self) -> Quantity:
        """Time the host is busy with this pass."""
        return self.build_s + self.submit_s


def forward_pass(
    checkpoint: Checkpoint,
    machine: Machine,
    *,
    rows: Quantity,
    context: Quantity,
    sequences: int = 1,
    head_rows: Quantity | None = None,
    new_shapes: float = 1.0,
    keys: Quantity | None = None,
) -> PassCost:
    """Price one pass of `rows` tokens of each of `sequences` with `context` tokens in each cache.

    Weights are read once for all sequences, a cache once for its own. Of `head_rows` tokens of
    each sequence logits are made, of all of them if left out. `new_shapes` is the share of such
    passes that meet rows and context which no pass before had (`Host.reshape_s`). `keys` are
    what each row attends to in every such pass, by which the scores of attention lie well or badly
    in memory; None where the context is the middle of a growing one.

    Raises:
        InputError: the machine has no row law for one of the checkpoint's weight formats.
    """
    logits = rows if head_rows is None else head_rows
    if (
        isinstance(rows, int)
        and isinstance(logits, int)
        and isinstance(context, int | float)
        and isinstance(keys, int | float | None)
    ):
        return _kept_forward_pass(
            checkpoint, machine, rows, context, sequences, logits, new_shapes, keys
        )
    return _forward_pass(checkpoint, machine, rows, context, sequences, logits, new_shapes, keys)


def _forward_pass(
    checkpoint: Checkpoint,
    machine: Machine,
    rows: Quantity,
    context: Quantity,
    sequences: int,
    head_rows: Quantity,
    new_shapes: float,
    keys: Quantity | None,
) -> PassCost:
    of_batch = in_batch(checkpoint) if sequences > 1 else checkpoint
    bare = cacheless_pass(of_batch, machine, rows * sequences, head_rows * sequences, sequences)
    caches = cache_times(
        checkpoint, machine, rows=rows, context=context, sequences=sequences, keys=keys
    )
    reshape_s = new_shapes * machine.host.reshape_s * meets_new_shape(checkpoint, machine, rows)
    submit_s = bare.submit_s + library_attention_s(
        checkpoint, machine, rows=rows, context=context, sequences=sequences
    )
    kv_s: Quantity = 0.0
    beyond_s: Quantity = 0.0
    lower_s, upper_s = bare.lower_s, bare.upper_s
    for count, time in caches:
        kv_s = kv_s + count * time.memory_s
        beyond_s = beyond_s + count * (time.total_s - time.memory_s)
        lower_s = lower_s + count * larger(time.memory_s, time.arithmetic_s)
        upper_s = upper_s + count * (time.memory_s + time.arithmetic_s)
    return PassCost(
        weights_s=bare.weights_s,
        kv_s=kv_s,
        arithmetic_s=bare.arithmetic_s + beyond_s,
        dispatch_s=bare.dispatch_s,
        lower_s=lower_s,
        upper_s=upper_s,
        build_s=bare.build_s + reshape_s,
        submit_s=submit_s,
        commit_share=bare.commit_share,
        begin_share=bare.begin_share,
    )


_kept_forward_pass = lru_cache(maxsize=512)(_forward_pass)
"""Rounds, baselines and planners ask for the same passes again and again."""


def cacheless_pass(
    checkpoint: Checkpoint,
    machine: Machine,
    rows: Quantity,
    head_rows: Quantity | None = None,
    sequences: int = 1,
) -> PassCost:
    """A pass without its caches: the same at every context, so it is kept for whole rows.

    Both kinds of rows are those of all `sequences` together.
    """
    logits = rows if head_rows is None else head_rows
    if isinstance(rows, int) and isinstance(logits, int):
        return _kept_pass(checkpoint, machine, rows, logits, sequences)
    return _cacheless_pass(checkpoint, machine, rows, logits, sequences)


def _cacheless_pass(
    checkpoint: Checkpoint,
    machine: Machine,
    rows: Quantity,
    head_rows: Quantity,
    sequences: int,
) -> PassCost:
    architecture, device, host = checkpoint.architecture, machine.device, machine.host
    head = siblings_time(
        machine, checkpoint.head_siblings, checkpoint.head_formats, head_rows, sequences
    )
    weights: list[tuple[int, ProductTime]] = [(1, head)]
    weights += [
        (1, siblings_time(machine, each, checkpoint.entry_formats, rows, sequences))
        for each in architecture.entry
    ]
    kernels = len(weights)
    special = Extras(device_s=0.0, build_s=0.0, submit_s=0.0)
    for layer, repeats, formats in checkpoint.layer_kinds:
        count = architecture.loops * repeats
        products = [
            siblings_time(machine, each, formats, rows, sequences) for each in layer.siblings
        ]
        if layer.experts is not None:
            products += experts_times(machine, layer.experts, formats, rows)
        weights += [(count, time) for time in products]
        own = layer_extras(
            layer,
            architecture.hidden_size,
            machine,
            rows,
            sequences,
            quantized_cache=checkpoint.cache_format is not None,
        )
        special = special.plus(own, count)
        # A mixer is one more kernel of its layer, whatever its cache costs; so is each unfolding.
        unfoldings = 0 if layer.unfolding is None else len(layer.unfolding.matrices)
        kernels += count * (len(products) + (layer.mixer is not None) + unfoldings)
    blocks = architecture.blocks
    several = np.greater(rows, 1)
    layer_s = device.layer_s + np.where(several, device.more_rows_layer_s, 0.0)
    dispatch_s = device.pass_s + blocks * layer_s + special.device_s + kernels * device.kernel_s
    elements_s = rows * blocks * architecture.hidden_size * device.element_s
    elements_s = elements_s + head_rows * architecture.head.columns * device.logit_s
    fixed_s = dispatch_s + elements_s
    weights_s = total(weights, lambda time: time.memory_s)
    submitted_s = submission_s(checkpoint, machine, rows)
    share = commit_share(checkpoint, machine, rows, sequences)
    return PassCost(
        weights_s=weights_s,
        kv_s=0.0,
        arithmetic_s=total(weights, lambda time: time.total_s) - weights_s + elements_s,
        dispatch_s=dispatch_s,
        lower_s=fixed_s + total(weights, lambda t: np.maximum(t.memory_s, t.arithmetic_s)),
        upper_s=fixed_s + total(weights, lambda time: time.memory_s + time.arithmetic_s),
        build_s=blocks * host.build_layer_s + host.build_pass_s + special.build_s,
        submit_s=(
            blocks * (host.submit_layer_s + several * host.submit_more_rows_layer_s)
            + host.submit_pass_s
            + submitted_s
            + special.submit_s
        ),
        commit_share=share,
        begin_share=begin_share(share, host.walk_share),
    )


_kept_pass = lru_cache(maxsize=256)(_cacheless_pass)


def commit_share(
    checkpoint: Checkpoint, machine: Machine, rows: Quantity, sequences: int
) -> Quantity:
    """The share of a pass that is submitted at once, at most all of it; 0 where nothing waits."""
    if not machine.kernels_per_commit:
        return 0.0
    kernels: Quantity = PASS_KERNELS
    for layer, repeats, formats in checkpoint.layer_kinds:
        quantized = checkpoint.cache_format is not None
        unfused = is_unfused(layer, machine, rows, quantized_cache=quantized)
        apart = np.logical_or(sequences > 1, unfused)
        extra = UNFUSED_KERNELS * apart + EXPERTS_KERNELS * choosing_effort(layer)
        each = len(formats) + (layer.mixer is not None) + SMALL_KERNELS + extra
        kernels = kernels + checkpoint.architecture.loops * repeats * each
    return np.minimum(1.0, machine.kernels_per_commit / kernels)


def begin_share(commit_share: Quantity, walk_share: Quantity) -> Quantity:
    """The share of submitting that comes before a device begins: the walk, and the first commit.

    0 where nothing is gathered. Draws of the walk's share may be more than all of it.
    """
    walked = np.minimum(walk_share, 1.0)
    begins = commit_share + (1.0 - commit_share) * walked
    return np.where(np.greater(commit_share, 0.0), begins, 0.0)


def submission_s(checkpoint: Checkpoint, machine: Machine, rows: Quantity) -> Quantity:
    """What submitting the matrix products of a pass costs the host; a gathered one counts once."""
    outside = [*checkpoint.head_formats.values(), *checkpoint.entry_formats.values()]
    seconds: Quantity = 0.0
    for stored_as in outside:
        seconds = seconds + machine.submission(stored_as).at(rows)
    loops = checkpoint.architecture.loops
    for _, repeats, formats in checkpoint.layer_kinds:
        for stored_as, matrices in Counter(formats.values()).items():
            each_s = machine.submission(stored_as).at(rows)
            seconds = seconds + loops * repeats * matrices * each_s
    return seconds


def total(
    counted: Sequence[tuple[int, ProductTime]], cost_s: Callable[[ProductTime], Quantity]
) -> Quantity:
    """Sum one cost over products that each occur a number of times."""
    seconds: Quantity = 0.0
    for count, time in counted:
        seconds = seconds + count * cost_s(time)
    return seconds
