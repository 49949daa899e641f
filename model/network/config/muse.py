"""Muse Glimmer: attention whose output is gated by a matrix as wide as all query heads."""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import (
    Network,
    attention_by_type,
    filled,
    full_attention,
    gated_mlp,
    layer_count,
    projections,
)
from model.network.config.fields import Fields
from model.network.layer import Layer
from model.network.matrix import Matrix

DEFAULTS: dict[str, object] = {"head_dim": 128, "sliding_window": 2048}
"""Of mlx-lm, for what a config does not state."""


def muse_glimmer(fields: Fields) -> Network:
    """The language model of Muse Glimmer: three layers slide, the fourth sees everything.

    mlx-lm reads its fields from `text_config` where there is one, and puts no prefix on its paths.
    Norms stand before and after both halves; those over query and key heads have no parameters.
    """
    inside = fields
    if fields.has("text_config"):
        inside = fields.child("text_config")
        inside = replace(inside, values={**fields.values, **inside.values})
    inside = filled(inside, DEFAULTS)
    hidden, depth = inside.size("hidden_size"), layer_count(inside)
    full = full_attention(inside)
    qkv, out = projections(hidden, full)
    # The gate multiplies what attention returns, but reads what the query reads.
    columns = full.query_heads * full.head_dim
    gate = Matrix(name="self_attn.gate_proj", columns=columns, depth=hidden)
    block = Layer(
        mixer_siblings=(replace(qkv, matrices=(*qkv.matrices, gate)), out),
        mlp_siblings=gated_mlp(hidden, inside.size("intermediate_size")),
        vector_params=4 * hidden,
    )
    types = ["sliding_attention" if n % 4 else "full_attention" for n in range(1, depth + 1)]
    return Network(
        fields=inside,
        layers=tuple(replace(block, mixer=each) for each in attention_by_type(inside, full, types)),
        tied=inside.flag("tie_word_embeddings", False),  # mlx-lm
    )
