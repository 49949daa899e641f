"""What a layer costs beyond a plain one of attention and an MLP, on the device and on the host.

That is for routed experts, a recurrence, further norms, for sharing the pass in a batch, and for
attention that no one kernel does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.cost.unfused_attention import unfused_rows
from model.machine.kernels.attention import leaves_scores
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.layer import ROUTER_KERNELS, Layer
from model.network.mixer import MixerKind
from model.units import Quantity

EXPERTS_KERNELS = 12
"""About: choosing, sorting, gathering and summing up routed experts (mlx-lm 0.32,
`models/qwen3_moe.py` and `models/switch_layers.py`)."""
USUAL_NORMS = 2
"""Of a layer: before its mixer and before its MLP."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extras:
    """Seconds of small kernels on the device, and of building and submitting them on the host."""

    device_s: Quantity
    build_s: Quantity
    submit_s: Quantity

    def plus(self, other: Extras, count: float) -> Extras:
        """These and `count` times the others."""
        return Extras(
            device_s=self.device_s + count * other.device_s,
            build_s=self.build_s + count * other.build_s,
            submit_s=self.submit_s + count * other.submit_s,
        )


def layer_extras(
    layer: Layer,
    hidden_size: int,
    machine: Machine,
    rows: Quantity,
    sequences: int,
    *,
    quantized_cache: bool = False,
) -> Extras:
    """What one layer costs beyond `layer_s`, `build_layer_s` and `submit_layer_s`."""
    device, host = machine.device, machine.host
    mixture = choosing_effort(layer)
    recurrent = is_recurrent(layer)
    batch = sequences > 1 and attends(layer)
    unfused = not batch and is_unfused(layer, machine, rows, quantized_cache=quantized_cache)
    norms = further_norms(layer, hidden_size)
    head_norms = layer.head_norms if layer.mixer is not None else 0
    all_norms = norms + head_norms
    return Extras(
        device_s=(
            mixture * device.experts_layer_s
            + recurrent * device.recurrent_layer_s
            + norms * device.norm_s
            + head_norms * device.head_norm_s
            + batch * device.batch_layer_s
            + unfused * device.unfused_layer_s
        ),
        build_s=(
            mixture * host.build_experts_layer_s
            + all_norms * host.build_norm_s
            + batch * host.build_batch_layer_s
            + unfused * host.build_unfused_layer_s
        ),
        submit_s=(
            mixture * host.submit_experts_layer_s
            + all_norms * host.submit_norm_s
            + batch * host.submit_batch_layer_s
            + unfused * host.submit_unfused_layer_s
        ),
    )


def choosing_effort(layer: Layer) -> float:
    """The small kernels of routed experts over those of usual ones, which cost about alike.

    The first layer of LLaDA2 is dense, and the others have a router of 35 kernels:

    >>> from model.network.target import load_target
    >>> layers = load_target("llada2.0-mini", "4bit").architecture.layers
    >>> [choosing_effort(layer) for layer in layers[:2]]
    [0.0, 3.5]
    """
    if layer.experts is None:
        return 0.0
    return 1.0 + (layer.experts.router_kernels - ROUTER_KERNELS) / EXPERTS_KERNELS


def is_recurrent(layer: Layer) -> bool:
    """Whether a state stands where others attend to a cache."""
    return layer.mixer is not None and layer.mixer.kind is MixerKind.RECURRENT


def attends(layer: Layer) -> bool:
    """Whether the layer attends to a cache."""
    return layer.mixer is not None and not is_recurrent(layer)


def is_unfused(
    layer: Layer, machine: Machine, rows: Quantity, *, quantized_cache: bool
) -> Quantity:
    """Whether rows of one sequence are attended with by no one kernel; broadcasts over rows."""
    return not quantized_cache and unfused_rows(machine, layer.mixer, rows, 1)


def meets_new_shape(checkpoint: Checkpoint, machine: Machine, rows: Quantity) -> Quantity:
    """Whether a new context is a new shape to the runtime; broadcasts over rows.

    It is for several rows of a sequence, except for those that MLX's own kernel attends with. A
    quantized cache is read by products, which have no plan.
    """
    if checkpoint.cache_format is not None:
        return np.zeros_like(rows, dtype=bool)
    if not leaves_scores(machine.vector_attention):
        return np.greater(rows, 1)
    some: Quantity = np.zeros_like(rows, dtype=bool)
    for layer, _, _ in checkpoint.layer_kinds:
        unfused = is_unfused(layer, machine, rows, quantized_cache=False)
        some = np.logical_or(some, unfused)
    return some


def further_norms(layer: Layer, hidden_size: int) -> int:
    """Norms beyond two, counted by their weights in units of the layer's width.

    Gemma norms what leaves a sublayer as well as what enters it. Those of queries and keys are
    counted apart, and of a recurrence these weights are convolutions.
    """
    if is_recurrent(layer):
        return 0
    return max(0, round(layer.vector_params / hidden_size) - USUAL_NORMS)


def library_attention_s(
    checkpoint: Checkpoint,
    machine: Machine,
    *,
    rows: Quantity,
    context: Quantity,
    sequences: int,
) -> Quantity:
    """What submitting attention costs on top in a pass that a library serves, in all its layers."""
    if machine.library_attention is None or checkpoint.cache_format is not None:
        return 0.0
    served = machine.library_attention.serves(rows=rows, context=context, sequences=sequences)
    attending = checkpoint.architecture.loops * sum(
        repeats for layer, repeats, _ in checkpoint.layer_kinds if attends(layer)
    )
    return served * attending * machine.host.submit_library_attention_s
