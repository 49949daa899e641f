"""Gemma 1 to 3: the table is always tied, heads are wide, and Gemma 3 slides in most layers.

mlx-lm gives every layer of Gemma 2 the whole context although transformers slides in every other
one; the two agree up to the window of 4096 tokens, and mlx-lm is what runs here.
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
    sliding,
)
from model.network.config.fields import Fields
from model.network.layer import Layer

HEAD_DIM = 256
"""Of every Gemma in transformers, and of Gemma 3 in mlx-lm."""


def gemma(fields: Fields) -> Network:
    """Gemma 1: Llama's two norms to a layer."""
    return _gemma(fields, norms=2)


def gemma2(fields: Fields) -> Network:
    """Gemma 2: a norm before and after both attention and MLP."""
    return _gemma(fields, norms=4)


def gemma3_text(fields: Fields) -> Network:
    """Gemma 3: every `sliding_window_pattern`-th layer sees the whole context, the others a window.

    Defaults are mlx-lm's, which reads neither `layer_types` nor transformers' window of 4096.
    """
    window = fields.size("sliding_window", 512)
    pattern = fields.size("sliding_window_pattern", 6)
    found = _gemma(fields, norms=4)
    whole = found.layers[0]
    heads = full_attention(fields, head_dim=HEAD_DIM)
    whole = replace(whole, vector_params=whole.vector_params + 2 * heads.head_dim, head_norms=2)
    local = replace(whole, mixer=sliding(heads, window))
    layers = tuple(local if index % pattern else whole for index in range(1, len(found.layers) + 1))
    tied = fields.flag("tie_word_embeddings", True)  # transformers
    return replace(found, layers=layers, tied=tied)


def gemma3(fields: Fields) -> Network:
    """The Gemma 3 inside a vision model; mlx-lm's defaults, and its vocabulary from outside."""
    values = {
        **fields.child("text_config").values,
        "vocab_size": fields.size("vocab_size", 262_208),
    }
    outside = replace(fields, values={**fields.values, "text_config": values})
    return inner_network(outside, gemma3_text, {"num_attention_heads": 8, "num_key_value_heads": 4})


def _gemma(fields: Fields, *, norms: int) -> Network:
    hidden = fields.size("hidden_size")
    attention = full_attention(fields, head_dim=HEAD_DIM)
    layer = Layer(
        mixer=attention,
        mixer_siblings=projections(hidden, attention),
        mlp_siblings=gated_mlp(hidden, fields.size("intermediate_size")),
        vector_params=norms * hidden,
    )
    return Network(fields=fields, layers=(layer,) * layer_count(fields), tied=True)
