"""OLMo 2 and 3: Llama with norms after attention and MLP, and over all query and key heads."""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import (
    Network,
    attention_by_type,
    full_attention,
    gated_mlp,
    layer_count,
    projections,
)
from model.network.config.fields import Fields
from model.network.layer import Layer


def olmo2(fields: Fields) -> Network:
    """OLMo 2: every layer sees the whole context."""
    all_full = ["full_attention"] * layer_count(fields)
    return _olmo(
        fields,
        all_full,
        mlp_bias=fields.flag("mlp_bias", False),  # mlx-lm
        tied=fields.flag("tie_word_embeddings", True),  # mlx-lm; transformers would untie
    )


def olmo3(fields: Fields) -> Network:
    """OLMo 3: three layers slide, the fourth sees the whole context, unless the config differs."""
    every_fourth = [
        "sliding_attention" if index % 4 else "full_attention"
        for index in range(1, layer_count(fields) + 1)
    ]
    tied = fields.flag("tie_word_embeddings", False)  # transformers and mlx-lm
    return _olmo(fields, every_fourth, mlp_bias=False, tied=tied)


def _olmo(fields: Fields, types: list[str], *, mlp_bias: bool, tied: bool) -> Network:
    hidden = fields.size("hidden_size")
    full = full_attention(fields, multi_head=True)
    bias = fields.flag("attention_bias", False)  # transformers and mlx-lm
    head_norms = (full.query_heads + full.kv_heads) * full.head_dim
    block = Layer(
        mixer_siblings=projections(hidden, full, bias=bias, out_bias=bias),
        mlp_siblings=gated_mlp(hidden, fields.size("intermediate_size"), bias=mlp_bias),
        vector_params=2 * hidden + head_norms,
    )
    return Network(
        fields=fields,
        layers=tuple(
            replace(block, mixer=attention) for attention in attention_by_type(fields, full, types)
        ),
        tied=tied,
    )
