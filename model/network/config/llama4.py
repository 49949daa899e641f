"""Llama 4: three of four layers look no further back than a chunk, and experts beside a shared one.

A chunked layer masks what came before the current chunk, but mlx-lm's cache keeps, and so reads,
the last `attention_chunk_size` tokens wherever the chunk began: a window of that many tokens. It
reads neither `no_rope_layers` nor `layer_types`, and never ties.
"""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import (
    Network,
    full_attention,
    gated_mlp,
    inner_network,
    layer_count,
    projections,
    routed_experts,
    sliding,
)
from model.network.config.fields import Fields
from model.network.layer import Layer


def llama4(fields: Fields) -> Network:
    """The language model inside Llama 4."""
    return inner_network(fields, _llama4_text, {})


def _llama4_text(fields: Fields) -> Network:
    hidden, depth = fields.size("hidden_size"), layer_count(fields)
    step = fields.size("interleave_moe_layer_step")
    whole = full_attention(fields)
    chunked = sliding(whole, fields.size("attention_chunk_size"))
    bias = fields.flag("attention_bias")
    dense_inner = fields.size("intermediate_size_mlp")
    dense = Layer(
        mixer_siblings=projections(hidden, whole, bias=bias, out_bias=bias),
        mlp_siblings=gated_mlp(hidden, dense_inner, module="feed_forward"),
        vector_params=2 * hidden,
    )
    shared_inner = fields.size("intermediate_size")
    gate_up, down = gated_mlp(hidden, shared_inner, module="feed_forward.shared_expert")
    sparse = replace(
        dense,
        mlp_siblings=(replace(gate_up, name="shared_gate_up"), replace(down, name="shared_down")),
        experts=routed_experts(
            fields,
            total_key="num_local_experts",
            inner_key="intermediate_size",
            router="feed_forward.router",
            module="feed_forward.experts",
        ),
    )
    return Network(
        fields=fields,
        layers=tuple(
            replace(dense if index % step else sparse, mixer=chunked if index % 4 else whole)
            for index in range(1, depth + 1)
        ),
        tied=False,
    )
