"""Qwen 2 and 3, dense, and the language model inside Qwen 3 VL.

Qwen 2 has biases on query, key and value alone; Qwen 3 has none and normalizes each query and key
head instead. mlx-lm reads no window for either: `use_sliding_window` is off in every release.
"""

from __future__ import annotations

from model.network.config.blocks import (
    Network,
    full_attention,
    gated_mlp,
    inner_network,
    layer_count,
    projections,
)
from model.network.config.fields import Fields
from model.network.layer import Layer


def qwen2(fields: Fields) -> Network:
    """Qwen 2 and 2.5."""
    hidden = fields.size("hidden_size")
    attention = full_attention(fields)
    layer = Layer(
        mixer=attention,
        mixer_siblings=projections(hidden, attention, bias=True),
        mlp_siblings=gated_mlp(hidden, fields.size("intermediate_size")),
        vector_params=2 * hidden,
    )
    tied = fields.flag("tie_word_embeddings", True)  # mlx-lm; transformers would untie
    return Network(fields=fields, layers=(layer,) * layer_count(fields), tied=tied)


def qwen3(fields: Fields) -> Network:
    """Qwen 3, with a norm over each query and key head.

    mlx-lm insists on `head_dim` and `tie_word_embeddings`; the defaults are those of transformers.
    """
    hidden = fields.size("hidden_size")
    attention = full_attention(fields, head_dim=128)
    layer = Layer(
        mixer=attention,
        mixer_siblings=projections(hidden, attention),
        mlp_siblings=gated_mlp(hidden, fields.size("intermediate_size")),
        vector_params=2 * hidden + 2 * attention.head_dim,
        head_norms=2,
    )
    tied = fields.flag("tie_word_embeddings", False)
    return Network(fields=fields, layers=(layer,) * layer_count(fields), tied=tied)


def qwen3_vl(fields: Fields) -> Network:
    """The Qwen 3 inside a vision model, which states `tie_word_embeddings` outside."""
    tied = fields.flag("tie_word_embeddings", False)  # transformers
    return inner_network(fields, qwen3, {"tie_word_embeddings": tied})
