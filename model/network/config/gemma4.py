"""Gemma 4: wide heads in the layers that see everything, and what its small and large kinds add.

The small ones (E2B, E4B) give every layer an input of its own, gathered from a table and gated in,
and their last layers read the keys and values of an earlier layer of their type. The large ones
take a key as its own value in full layers: one matrix less, but mlx-lm caches both, because only
the key is rotated. The mixture runs its experts beside the dense MLP, not in place of it.
"""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import (
    Network,
    attention_by_type,
    filled,
    full_attention,
    gated_mlp,
    inner_network,
    layer_count,
    projections,
    routed_experts,
)
from model.network.config.fields import Fields
from model.network.layer import Experts, Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import Attention, MixerKind

DEFAULTS: dict[str, object] = {
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "global_head_dim": 512,
    "sliding_window": 512,
    "sliding_window_pattern": 5,
    "num_kv_shared_layers": 20,
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262_144,
}
"""Of mlx-lm, for what a config does not state."""


def gemma4(fields: Fields) -> Network:
    """The language model inside Gemma 4, whose vocabulary mlx-lm reads from outside."""
    vocabulary = fields.size("vocab_size", 262_144)
    inside = {**fields.child("text_config").values, "vocab_size": vocabulary}
    outside = replace(fields, values={**fields.values, "text_config": inside})
    return inner_network(outside, gemma4_text, {})


def gemma4_text(fields: Fields) -> Network:
    """Gemma 4's language model alone."""
    fields = filled(fields, DEFAULTS)
    hidden, depth = fields.size("hidden_size"), layer_count(fields)
    pattern = fields.size("sliding_window_pattern")
    types = ["sliding_attention" if n % pattern else "full_attention" for n in range(1, depth + 1)]
    local = full_attention(fields)
    whole = _global_heads(fields, local)
    mixers = tuple(
        whole if each.kind is MixerKind.FULL else each
        for each in attention_by_type(fields, local, types)
    )
    sharing = _sharing_from(fields, mixers)
    width = fields.size("hidden_size_per_layer_input", least=0)
    return Network(
        fields=fields,
        layers=tuple(
            _block(fields, replace(mixer, owns_cache=index < sharing), width)
            for index, mixer in enumerate(mixers)
        ),
        tied=fields.flag("tie_word_embeddings", True),  # transformers and mlx-lm
        entry=_projected_inputs(hidden, depth * width) if width else (),
        entry_vector_params=width,
        lookups=(_table(fields, depth * width),) if width else (),
    )


def _global_heads(fields: Fields, local: Attention) -> Attention:
    """The heads of a layer that sees everything: wider, and fewer where keys are values."""
    key = "num_global_key_value_heads"
    keys = fields.size(key, local.kv_heads) if _keys_are_values(fields) else local.kv_heads
    if local.query_heads % keys:
        wrong = f"does not divide the {local.query_heads} attention heads"
        raise fields.refusal(key, wrong, "give a divisor of num_attention_heads")
    return replace(local, kv_heads=keys, head_dim=fields.size("global_head_dim"))


def _keys_are_values(fields: Fields) -> bool:
    return fields.flag("attention_k_eq_v", False)  # transformers and mlx-lm


def _sharing_from(fields: Fields, mixers: tuple[Attention, ...]) -> int:
    """The first layer without a cache of its own; each needs an earlier owner of its type."""
    shared = fields.size("num_kv_shared_layers", least=0)
    first = max(0, len(mixers) - shared)
    orphans = {each.kind for each in mixers[first:]} - {each.kind for each in mixers[:first]}
    if orphans:
        kind = min(each.value for each in orphans)
        wrong = f"at {shared} leaves no earlier layer of {kind} attention to share with"
        raise fields.refusal("num_kv_shared_layers", wrong, "give fewer, or 0 for none")
    return first


def _block(fields: Fields, mixer: Attention, input_width: int) -> Layer:
    hidden, inner = fields.size("hidden_size"), fields.size("intermediate_size")
    if not mixer.owns_cache and fields.flag("use_double_wide_mlp", True):  # mlx-lm
        inner *= 2
    experts = _experts(fields) if fields.flag("enable_moe_block", False) else None
    # Norms before and after both halves, one over each head, and the scale of the whole layer.
    vectors = 4 * hidden + mixer.head_dim * (1 + mixer.owns_cache) + 1
    if experts is not None:
        # Three more norms, the router's scale of its input, and one number for each expert.
        vectors += 4 * hidden + experts.num_experts
    return Layer(
        mixer=mixer,
        mixer_siblings=_projections(fields, mixer),
        mlp_siblings=(*gated_mlp(hidden, inner), *_gated_input(hidden, input_width)),
        experts=experts,
        vector_params=vectors + (hidden if input_width else 0),
        head_norms=1 + mixer.owns_cache,
    )


def _projections(fields: Fields, mixer: Attention) -> tuple[Siblings, Siblings]:
    """Query, key and value without what this layer takes from elsewhere."""
    qkv, out = projections(fields.size("hidden_size"), mixer)
    query, key, value = qkv.matrices
    kept = (query, key, value)
    if not mixer.owns_cache:
        kept = (query,)
    elif mixer.kind is MixerKind.FULL and _keys_are_values(fields):
        kept = (query, key)
    return replace(qkv, matrices=kept), out


def _experts(fields: Fields) -> Experts:
    return routed_experts(
        fields,
        total_key="num_experts",
        inner_key="moe_intermediate_size",
        router="router.proj",
        module="experts.switch_glu",
        top_k_key="top_k_experts",
        protected=True,
    )


def _gated_input(hidden: int, width: int) -> tuple[Siblings, ...]:
    """What brings a layer's own input in, after the MLP."""
    if not width:
        return ()
    gate = Matrix(name="per_layer_input_gate", columns=width, depth=hidden)
    out = Matrix(name="per_layer_projection", columns=hidden, depth=width)
    return (
        Siblings(name="input_gate", matrices=(gate,)),
        Siblings(name="input_out", matrices=(out,)),
    )


def _projected_inputs(hidden: int, columns: int) -> tuple[Siblings]:
    """What makes the inputs of all layers from the embedding, to be added to the gathered ones."""
    matrix = Matrix(name="model.per_layer_model_projection", columns=columns, depth=hidden)
    return (Siblings(name="layer_inputs", matrices=(matrix,)),)


def _table(fields: Fields, depth: int) -> Matrix:
    tokens = fields.size("vocab_size_per_layer_input")
    return Matrix(name="model.embed_tokens_per_layer", columns=tokens, depth=depth)
