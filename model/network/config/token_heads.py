"""Heads that draft token by token: MTP, EAGLE-3, Gemma 4's assistants, ReDrafter.

Modules are those of mlx-vlm 0.7.10 (`speculative/drafters`), and for ReDrafter of
github:apple/ml-recurrent-drafter (`recurrent_drafting/mlx/modeling_drafter.py`).
"""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import (
    attention_by_type,
    full_attention,
    gated_mlp,
    layer_count,
    projections,
    sliding,
)
from model.network.config.fields import Fields
from model.network.config.head_parts import (
    head_architecture,
    one_matrix,
    target_name,
    with_depth,
    with_gate,
)
from model.network.config.mixture import qwen2_moe
from model.network.draft_head import DraftHead, HeadKind
from model.network.layer import Layer
from model.network.matrix import Matrix

EAGLE_TAPS = 3
"""Layers of the target whose states EAGLE-3 reads."""


def qwen3_5_mtp(fields: Fields, name: str) -> DraftHead:
    """Qwen 3.5's MTP head: `fc` joins a token and a state, then gated attention and an MLP.

    Where the target is a mixture, so is the head. Its router is quantized like the rest, because
    mlx-vlm names no exception for it.
    """
    inside = fields.child("text_config")
    hidden, depth = inside.size("hidden_size"), inside.size("mtp_num_hidden_layers", 1)
    attention = full_attention(inside)
    qkv, out = projections(hidden, attention)
    layer = Layer(
        mixer=attention,
        mixer_siblings=(with_gate(qkv), out),
        vector_params=2 * hidden + 2 * attention.head_dim,
        head_norms=2,
    )
    if inside.size("num_experts", 0, least=0):
        (sparse,) = qwen2_moe(
            replace(inside, values={**inside.values, "num_hidden_layers": 1})
        ).layers
        layer = replace(layer, mlp_siblings=sparse.mlp_siblings, experts=sparse.experts)
    else:
        mlp = gated_mlp(hidden, inside.size("intermediate_size"))
        layer = replace(layer, mlp_siblings=mlp)
    architecture = head_architecture(
        inside,
        name,
        (layer,) * depth,
        entry=(one_matrix("fc", columns=hidden, depth=2 * hidden),),
        norms=3,  # of the token, of the state, and the final one
    )
    return DraftHead(
        architecture=architecture,
        kind=HeadKind.MTP,
        target=target_name(fields),
        target_hidden_size=hidden,
    )


def eagle3(fields: Fields, name: str) -> DraftHead:
    """EAGLE-3: `fc` joins three states, and the first layer's attention reads token and state.

    The head owns its logits, over `draft_vocab_size` tokens. Its files hold the target's embedding
    too, so it is counted here. Tables of integers that translate tokens are not parameters.
    """
    outside, where = fields, "transformer_layer_config"  # as github:vllm-project/speculators
    inside = fields.child(where) if fields.has(where) else fields
    hidden = inside.size("hidden_size")
    target_hidden = outside.size("target_hidden_size", hidden)
    attention = full_attention(inside, multi_head=True)
    bias = inside.flag("attention_bias", False)  # mlx-vlm
    qkv, out = projections(hidden, attention, bias=bias, out_bias=bias)
    later = Layer(
        mixer=attention,
        mixer_siblings=(qkv, out),
        mlp_siblings=gated_mlp(hidden, inside.size("intermediate_size")),
        vector_params=2 * hidden,
    )
    first = replace(
        later,
        mixer_siblings=(with_depth(qkv, 2 * hidden), out),
        vector_params=3 * hidden,  # token and state are normed apart
    )
    fc = one_matrix("fc", columns=hidden, depth=EAGLE_TAPS * target_hidden)
    vocabulary = outside.size("draft_vocab_size", inside.size("vocab_size"))
    architecture = head_architecture(
        inside,
        name,
        (first, *(later,) * (layer_count(inside) - 1)),
        entry=(fc,),
        norms=1,
        head=Matrix(name="lm_head", columns=vocabulary, depth=hidden),
        owns_embedding=True,
    )
    return DraftHead(
        architecture=architecture,
        kind=HeadKind.EAGLE,
        target=target_name(fields),
        target_hidden_size=target_hidden,
        fusion=fc,
    )


def gemma4_assistant(fields: Fields, name: str) -> DraftHead:
    """Gemma 4's assistants: queries of their own over the target's keys and values.

    With `use_ordered_embeddings` the logits are of the tokens of the likeliest
    `centroid_intermediate_top_k` clusters alone: the centroids are read, and the rows of the table
    that belong to those clusters. All rows of a pass choose their own; that is left out.
    """
    inside = fields.child("text_config")
    hidden, vocabulary = inside.size("hidden_size"), inside.size("vocab_size")
    backbone = fields.size("backbone_hidden_size")
    table = Matrix(name="model.embed_tokens", columns=vocabulary, depth=hidden)
    head, lookups = table, ()
    if fields.flag("use_ordered_embeddings", False):
        centroids = fields.size("num_centroids")
        chosen = fields.size("centroid_intermediate_top_k") * (vocabulary // centroids)
        stored = Matrix(name="masked_embedding.centroids", columns=centroids, depth=hidden)
        head, lookups = replace(stored, columns=centroids + chosen), (stored,)
    architecture = head_architecture(
        inside,
        name,
        _assistant_layers(inside),
        entry=(
            one_matrix("pre_projection", columns=hidden, depth=2 * backbone),
            one_matrix("post_projection", columns=backbone, depth=hidden),
        ),
        norms=1,
        head=head,
        tied=True,
        owns_embedding=True,
        lookups=lookups,
    )
    return DraftHead(
        architecture=architecture,
        kind=HeadKind.ASSISTANT,
        target=target_name(fields),
        target_hidden_size=backbone,
    )


def _assistant_layers(inside: Fields) -> tuple[Layer, ...]:
    """Layers without keys and values; where a layer sees everything, heads are wider and fewer."""
    hidden = inside.size("hidden_size")
    local = full_attention(inside)
    wide = local.head_dim
    keys = local.kv_heads
    if inside.has("global_head_dim"):
        wide = inside.size("global_head_dim")
    if inside.flag("attention_k_eq_v", False) and inside.has("num_global_key_value_heads"):
        keys = inside.size("num_global_key_value_heads")
    whole = replace(local, head_dim=wide, kv_heads=keys, owns_cache=False)
    layers: list[Layer] = []
    for typed in attention_by_type(inside, whole, ["full_attention"] * layer_count(inside)):
        attention = whole
        if typed.window is not None:
            attention = sliding(replace(local, owns_cache=False), typed.window)
        qkv, out = projections(hidden, attention)
        queries = replace(qkv, name="q", matrices=qkv.matrices[:1])
        layers.append(
            Layer(
                mixer=attention,
                mixer_siblings=(queries, out),
                mlp_siblings=gated_mlp(hidden, inside.size("intermediate_size")),
                vector_params=4 * hidden + attention.head_dim + 1,  # and a scalar for the layer
                head_norms=1,
            )
        )
    return tuple(layers)


def redrafter(fields: Fields, name: str) -> DraftHead:
    """ReDrafter: a recurrent cell over tokens, then residual blocks over state and context."""
    hidden, exit_dim = fields.size("hidden_size"), fields.size("exit_dim")
    blocks = [
        one_matrix(f"res_blocks.{index}.linear", columns=exit_dim, depth=exit_dim, bias=True)
        for index in range(fields.size("num_draft_layers"))
    ]
    architecture = head_architecture(
        fields,
        name,
        (),
        entry=(
            one_matrix("rnn_u", columns=hidden, depth=hidden, bias=True),
            one_matrix("rnn_w", columns=hidden, depth=hidden),
            *blocks,
        ),
        norms=0,
        head=Matrix(name="lm_head", columns=fields.size("vocab_size"), depth=exit_dim),
    )
    return DraftHead(
        architecture=architecture,
        kind=HeadKind.REDRAFTER,
        target=target_name(fields),
        target_hidden_size=hidden,
    )
