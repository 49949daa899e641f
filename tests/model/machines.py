"""Machines with round numbers, so that tests can be followed by hand."""

from __future__ import annotations

import math
from typing import Any

from model.machine.machine import Machine
from model.machine.overheads import Device, Host
from model.machine.row_law import Regime, RowLaw, Shape
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint
from model.network.config import read_config
from model.network.layer import Experts, Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import AbstractMixer, Attention, LatentAttention, Recurrence
from model.network.weight_format import weight_format
from model.units import Quantity

NO_DEVICE = Device(
    kernel_s=0.0, layer_s=0.0, more_rows_layer_s=0.0, element_s=0.0, pass_s=0.0, logit_s=0.0
)
NO_HOST = Host(
    build_layer_s=0.0,
    build_pass_s=0.0,
    submit_layer_s=0.0,
    submit_pass_s=0.0,
    sync_s=0.0,
    reshape_s=0.0,
)
HOST = Host(
    build_layer_s=1e-5,
    build_pass_s=2e-5,
    submit_layer_s=5e-6,
    submit_pass_s=5e-6,
    sync_s=1e-4,
    reshape_s=3e-4,
)


def flat_law(
    *, bandwidth: Quantity, flops: Quantity = math.inf, tile_rows: float = math.inf
) -> RowLaw:
    """One regime for all rows."""
    regime = Regime(
        first_row=1,
        tile_rows=tile_rows,
        pads=False,
        bandwidth_bytes_per_s=bandwidth,
        flops_per_s=flops,
    )
    return RowLaw(overlap=math.inf, rows_measured=64, regimes=(regime,))


def machine(
    law: RowLaw, *, device: Device = NO_DEVICE, host: Host = NO_HOST, **changes: Any
) -> Machine:
    """A machine that prices every format and attention by one law."""
    fields: dict[str, Any] = {
        "name": "test",
        "chip": "test",
        "runtime": "test",
        "memory_bytes": 16 * 2**30,
        "recommended_working_set_bytes": None,
        "activation_bytes": 2,
        "context_measured": 4096,
        "laws": {("affine", Shape.WIDE): law, ("float", Shape.WIDE): law},
        "submissions": {},
        "attention": law,
        "device": device,
        "host": host,
    }
    return Machine(**(fields | changes))


def small_architecture(**changes: object) -> Architecture:
    """A Llama of 2 layers that a person can count."""
    config: dict[str, object] = {
        "model_type": "llama",
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "vocab_size": 1024,
        "num_hidden_layers": 2,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
    }
    return read_config(config | changes, name="small", source="test")


def small(format_name: str = "bf16", **changes: object) -> Checkpoint:
    """The small network in a weight format."""
    return Checkpoint(
        architecture=small_architecture(**changes), weight_format=weight_format(format_name)
    )


HIDDEN = 256
FULL = Attention(query_heads=4, kv_heads=2, head_dim=64)
WINDOWED = Attention(query_heads=4, kv_heads=2, head_dim=64, window=100)
STATE = Recurrence(state_elements=4096, conv_elements=512, macs=8192)
UNFOLDING = Siblings(
    name="unfolding",
    matrices=(
        Matrix(name="embed_q", columns=64, depth=48, count=4),
        Matrix(name="unembed_out", columns=48, depth=64, count=4),
    ),
)
LATENT = LatentAttention(
    query_heads=4, latent_dim=64, rope_dim=32, key_dim=48, value_dim=48, unfolding=UNFOLDING
)


def single(name: str, *, columns: int, depth: int, count: int = 1) -> Siblings:
    """A matrix on its own."""
    matrix = Matrix(name=name, columns=columns, depth=depth, count=count)
    return Siblings(name=name, matrices=(matrix,))


def experts_of(*, num_experts: int, top_k: int, shared_choice: float | None = None) -> Experts:
    """Experts of 256 x 128 and back, and their router."""
    return Experts(
        router=Matrix(name="router", columns=num_experts, depth=HIDDEN),
        siblings=(
            single("experts.up", columns=128, depth=HIDDEN, count=num_experts),
            single("experts.down", columns=HIDDEN, depth=128, count=num_experts),
        ),
        num_experts=num_experts,
        top_k=top_k,
        shared_choice=shared_choice,
    )


def block(mixer: AbstractMixer | None, experts: Experts | None = None) -> Layer:
    """A layer of square mixer matrices and an MLP of 512, or of experts."""
    dense = (single("up", columns=512, depth=HIDDEN), single("down", columns=HIDDEN, depth=512))
    projections = (
        single("q_proj", columns=HIDDEN, depth=HIDDEN),
        single("o_proj", columns=HIDDEN, depth=HIDDEN),
    )
    return Layer(
        mixer=mixer,
        mixer_siblings=() if mixer is None else projections,
        mlp_siblings=() if experts is not None else dense,
        experts=experts,
        vector_params=0,
    )


def network(
    *layers: Layer, name: str = "network", format_name: str = "bf16", cache: str | None = None
) -> Checkpoint:
    """These layers and a head of 1,024 tokens; `cache` is the format of the cache."""
    head = Matrix(name="lm_head", columns=1024, depth=HIDDEN)
    architecture = Architecture(
        name=name,
        model_type="test",
        hidden_size=HIDDEN,
        vocab_size=1024,
        layers=layers,
        head=head,
        tied=False,
        final_vector_params=0,
        context_limit=None,
        source="test",
    )
    return Checkpoint(
        architecture=architecture,
        weight_format=weight_format(format_name),
        cache_format=None if cache is None else weight_format(cache),
    )
