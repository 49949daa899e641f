"""Llama and what mlx-lm runs as Llama: Mistral, Ministral 3, SmolLM 3, Mistral's vision models.

A window counts only where `layer_types` names sliding layers: mlx-lm gives every other layer the
whole context, whatever `sliding_window` says (Mistral 7B v0.1).
"""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import (
    Network,
    attention_by_type,
    full_attention,
    gated_mlp,
    inner_network,
    layer_count,
    projections,
)
from model.network.config.fields import Fields
from model.network.layer import Layer


def llama(fields: Fields) -> Network:
    """Pre-norm blocks of attention and gated MLP; biases only where the config asks for them."""
    return _llama(
        fields,
        attention_bias=fields.flag("attention_bias", False),  # transformers and mlx-lm
        mlp_bias=fields.flag("mlp_bias", False),  # transformers and mlx-lm
    )


def ministral3(fields: Fields) -> Network:
    """Llama without biases; its scaling of long contexts has no weights."""
    return _llama(fields, attention_bias=False, mlp_bias=False)


def mistral3(fields: Fields) -> Network:
    """The language model inside a Mistral vision model.

    Raises:
        InputError: that model is of a kind that is not known.
    """
    families = {"ministral3": ministral3, "mistral": llama, "llama": llama}
    inside = fields.child("text_config")
    model_type = inside.text("model_type", "mistral")  # transformers; mlx-lm takes it for Llama
    if model_type not in families:
        right = f"inside mistral3, {', '.join(families)} are known"
        raise inside.refusal("model_type", "is not a known language model", right)
    # mlx-lm's mistral3 unties where its Llama would tie.
    return inner_network(fields, families[model_type], {"tie_word_embeddings": False})


def _llama(fields: Fields, *, attention_bias: bool, mlp_bias: bool) -> Network:
    hidden, inner = fields.size("hidden_size"), fields.size("intermediate_size")
    full = full_attention(fields, multi_head=True)
    block = Layer(
        mixer_siblings=projections(hidden, full, bias=attention_bias, out_bias=attention_bias),
        mlp_siblings=gated_mlp(hidden, inner, bias=mlp_bias),
        vector_params=2 * hidden,
    )
    all_full = ["full_attention"] * layer_count(fields)
    return Network(
        fields=fields,
        layers=tuple(
            replace(block, mixer=attention)
            for attention in attention_by_type(fields, full, all_full)
        ),
        tied=fields.flag("tie_word_embeddings", True),  # mlx-lm; transformers would untie
    )
