"""Machines with round numbers, so that tests can be followed by hand."""

from __future__ import annotations

import math
from typing import Any

from model.architecture import Architecture
from model.checkpoint import Checkpoint
from model.config import read_config
from model.machine import Device, Host, Machine
from model.row_law import Regime, RowLaw, Shape
from model.units import Quantity
from model.weight_format import weight_format

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
