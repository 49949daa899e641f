"""Heads that draft a block in one pass: DFlash, DFlash 2, DSpark.

Modules are those of mlx-vlm 0.7.10 (`speculative/drafters`: `qwen3_dflash`, `dflash2`, `dspark`,
`gemma4_dspark`). `fc` joins the states of some layers of the target (the taps), and every layer
makes keys and values of the result beside those of the block itself.

A config.json of Hugging Face keeps some fields in `dflash_config`; whether the file holds tables
of its own it does not say, so `_own_embed` and `_own_lm_head` do. Without them both are borrowed,
except by Gemma's heads, whose module always has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from model.network.config.blocks import (
    attention_by_type,
    full_attention,
    gated_mlp,
    layer_count,
    projections,
)
from model.network.config.fields import Fields
from model.network.config.head_parts import head_architecture, one_matrix, target_name, with_gate
from model.network.draft_head import DraftHead, HeadKind
from model.network.layer import Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import Attention

CONVOLUTION_ENDS = 2
"""A convolution of DFlash 2 runs before its sublayer and after it."""


def dflash(fields: Fields, name: str) -> DraftHead:
    """DFlash: a block of masks behind the last token, filled at once."""
    fields = _flat(fields)
    return _head(fields, name, HeadKind.DFLASH, _layers(fields))


def dflash2(fields: Fields, name: str) -> DraftHead:
    """DFlash 2: convolutions around both sublayers; the last step looks up pairs of tokens."""
    fields = _flat(fields)
    hidden, kernel = fields.size("hidden_size"), fields.size("conv_kernel_size")
    vocabulary, rank = fields.size("vocab_size"), fields.size("selector_rank")
    groups = hidden // fields.size("conv_group_size")
    columns = CONVOLUTION_ENDS * kernel * groups
    attention_conv, mlp_conv = (
        one_matrix(f"{each}_conv.kernel_projection", columns=columns, depth=hidden)
        for each in ("attention", "mlp")
    )
    layers = [
        replace(
            layer,
            mixer_siblings=(attention_conv, *layer.mixer_siblings),
            mlp_siblings=(mlp_conv, *layer.mlp_siblings),
            vector_params=layer.vector_params + 2 * CONVOLUTION_ENDS * kernel * hidden,
        )
        for layer in _layers(fields)
    ]
    selector = "candidate_selector"
    codebooks = tuple(
        Matrix(name=f"{selector}.{each}_codebook", columns=vocabulary, depth=rank)
        for each in ("predecessor", "successor")
    )
    choice = one_matrix(f"{selector}.hidden_projection", columns=rank, depth=hidden)
    return _head(fields, name, HeadKind.DFLASH2, layers, entry=(choice,), lookups=codebooks)


def dspark(fields: Fields, name: str) -> DraftHead:
    """DSpark: the logits of a token are corrected by the token before it, one after the other.

    The confidence head is stored, but mlx-vlm 0.7.10 does not run it when it drafts.
    """
    fields = _flat(fields)
    vocabulary, rank = fields.size("vocab_size"), fields.size("markov_rank")
    correction = Matrix(name="markov_head.markov_w2", columns=vocabulary, depth=rank)
    tables = [replace(correction, name="markov_head.markov_w1"), correction]
    if fields.flag("enable_confidence_head", False):
        seen = rank if fields.flag("confidence_head_with_markov", True) else 0
        width = fields.size("hidden_size") + seen
        tables.append(Matrix(name="confidence_head.proj", columns=1, depth=width, bias=True))
    return _head(
        fields, name, HeadKind.DSPARK, _layers(fields), lookups=tables, correction=correction
    )


def _flat(fields: Fields) -> Fields:
    """The fields of `dflash_config` among the others, as mlx-vlm reads them."""
    if not fields.has("dflash_config"):
        return fields
    inside: Mapping[str, object] = fields.child("dflash_config").values
    return replace(fields, values={**fields.values, **inside})


def _head(
    fields: Fields,
    name: str,
    kind: HeadKind,
    layers: Sequence[Layer],
    *,
    entry: Sequence[Siblings] = (),
    lookups: Sequence[Matrix] = (),
    correction: Matrix | None = None,
) -> DraftHead:
    hidden, vocabulary = fields.size("hidden_size"), fields.size("vocab_size")
    taps = len(fields.items("target_layer_ids")) or fields.size("_taps")
    fc = one_matrix("fc", columns=hidden, depth=taps * hidden)
    owns = _is_gemma(fields)
    own_head = Matrix(name="lm_head", columns=vocabulary, depth=hidden)
    architecture = head_architecture(
        fields,
        name,
        layers,
        entry=(fc, *entry),
        norms=2,  # of the joined states, and the final one
        head=own_head if fields.flag("_own_lm_head", owns) else None,
        owns_embedding=fields.flag("_own_embed", owns),
        lookups=lookups,
    )
    return DraftHead(
        architecture=architecture,
        kind=kind,
        target=target_name(fields),
        target_hidden_size=hidden,
        block_length=fields.optional_size("block_size"),
        fusion=fc,
        correction=correction,
    )


def _is_gemma(fields: Fields) -> bool:
    return fields.text("model_type").startswith("gemma")


def _layers(fields: Fields) -> tuple[Layer, ...]:
    full = full_attention(fields, head_dim=128)  # mlx-vlm
    types = ["full_attention"] * layer_count(fields)
    build = _gemma_layer if _is_gemma(fields) else _qwen_layer
    return tuple(build(fields, each) for each in attention_by_type(fields, full, types))


def _qwen_layer(fields: Fields, attention: Attention) -> Layer:
    """Qwen 3's layer; one head was trained with an output gate, which mlx-vlm does not run."""
    hidden = fields.size("hidden_size")
    qkv, out = projections(hidden, attention)
    gated = fields.flag("attn_output_gate", False)
    return Layer(
        mixer=attention,
        mixer_siblings=(with_gate(qkv) if gated else qkv, out),
        mlp_siblings=gated_mlp(hidden, fields.size("intermediate_size")),
        vector_params=2 * hidden + 2 * attention.head_dim,
        head_norms=2,
    )


def _gemma_layer(fields: Fields, attention: Attention) -> Layer:
    """Gemma 4's layer: where it sees everything, keys are values and heads wider and fewer."""
    hidden = fields.size("hidden_size")
    shares = attention.window is None and fields.flag("attention_k_eq_v", False)
    if attention.window is None:
        wide = fields.size("global_head_dim", attention.head_dim)
        attention = replace(attention, head_dim=wide)
    if shares:
        keys = fields.size("num_global_key_value_heads", attention.kv_heads)
        attention = replace(attention, kv_heads=keys)
    qkv, out = projections(hidden, attention)
    if shares:
        qkv = replace(qkv, name="qk", matrices=qkv.matrices[:2])
    return Layer(
        mixer=attention,
        mixer_siblings=(qkv, out),
        mlp_siblings=gated_mlp(hidden, fields.size("intermediate_size")),
        vector_params=4 * hidden + 2 * attention.head_dim + 1,  # and a scalar for the layer
        head_norms=2,
    )
