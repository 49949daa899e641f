"""Diffusion language models: LLaDA, LLaDA 2, Dream and DiffusionGemma.

Their layers are those of ordinary networks; what differs is that a pass runs a whole block or
canvas of rows, which see each other (:mod:`model.strategies` prices that). mlx-vlm 0.7.10 runs
LLaDA 2 and DiffusionGemma, and the paths and formats here are its; LLaDA and Dream have no MLX
engine, and their paths are those of the original modules.
"""

from __future__ import annotations

from dataclasses import replace

from model.network.config.biased_routing import after_dense, with_fused_experts
from model.network.config.blocks import (
    MOST_LAYERS,
    Network,
    filled,
    full_attention,
    gated_mlp,
    inner_network,
    layer_count,
    routed_experts,
)
from model.network.config.fields import Fields
from model.network.config.gemma4 import gemma4_text
from model.network.config.latent import bare_router, shared_experts
from model.network.config.qwen import qwen2
from model.network.layer import Layer
from model.network.matrix import Matrix, Siblings

LLADA2_ROUTER_KERNELS = 35
"""mlx-vlm limits the choice to some groups of experts, sorts three times, and fuses none of it
(mlx-vlm 0.7.10, `llada2_moe/language.py`; counted in the graph that it builds)."""
MODEL_TYPES = frozenset({"Dream", "diffusion_gemma", "llada", "llada2_moe"})
"""The model types that denoise blocks instead of decoding token by token."""


def dream(fields: Fields) -> Network:
    """Dream: the matrices of Qwen 2.5, untied unless the config ties them (its own default)."""
    return qwen2(filled(fields, {"tie_word_embeddings": False}))


def llada(fields: Fields) -> Network:
    """LLaDA: Llama under the names of the first OLMo; biases only where asked for.

    Raises:
        InputError: the heads do not divide as they must.
    """
    hidden, heads = fields.size("d_model"), fields.size("n_heads")
    keys = fields.size("n_kv_heads", heads)
    if hidden % heads:
        wrong = f"does not divide the width of {hidden}"
        raise fields.refusal("n_heads", wrong, "give a divisor of d_model")
    if heads % keys:
        wrong = f"does not divide the {heads} heads"
        raise fields.refusal("n_kv_heads", wrong, "give a divisor of n_heads")
    renamed = replace(
        fields,
        values={
            **fields.values,
            "hidden_size": hidden,
            "num_attention_heads": heads,
            "num_key_value_heads": keys,
            "vocab_size": fields.size("embedding_size", fields.size("vocab_size")),
            "max_position_embeddings": fields.optional_size("max_sequence_length"),
        },
    )
    attention = full_attention(renamed)
    bias = fields.flag("include_bias", False)
    qkv_bias = bias or fields.flag("include_qkv_bias", False)
    key_columns = keys * attention.head_dim
    inner = fields.size("mlp_hidden_size")

    def group(name: str, depth: int, biased: bool, **columns: int) -> Siblings:
        matrices = (Matrix(name=n, columns=c, depth=depth, bias=biased) for n, c in columns.items())
        return Siblings(name=name, matrices=tuple(matrices))

    layer = Layer(
        mixer=attention,
        mixer_siblings=(
            group("qkv", hidden, qkv_bias, q_proj=hidden, k_proj=key_columns, v_proj=key_columns),
            group("out", hidden, bias, attn_out=hidden),
        ),
        mlp_siblings=(
            group("gate_up", hidden, bias, ff_proj=inner, up_proj=inner),
            group("down", inner, bias, ff_out=hidden),
        ),
        vector_params=2 * hidden * (1 + bias),
    )
    return Network(
        fields=renamed,
        layers=(layer,) * fields.size("n_layers", most=MOST_LAYERS),
        tied=fields.flag("weight_tying"),
        norm_vectors=1 + bias,
        layers_path="model.transformer.blocks",
        embedding_name="model.transformer.wte",
        head_name="model.transformer.ff_out",
    )


def llada2_moe(fields: Fields) -> Network:
    """LLaDA 2: fused query, key and value, and after dense layers a shared and routed experts.

    Sizes have to be stated; only what is absent from some releases has mlx-vlm's default.
    """
    hidden, depth = fields.size("hidden_size"), layer_count(fields)
    attention = full_attention(fields)
    queries = attention.query_heads * attention.head_dim
    fused = Matrix(
        name="attention.query_key_value",
        columns=queries + 2 * attention.kv_heads * attention.head_dim,
        depth=hidden,
        bias=fields.flag("use_qkv_bias", False),
    )
    out_bias = fields.flag("use_bias", False)
    out = Matrix(name="attention.dense", columns=hidden, depth=queries, bias=out_bias)
    head_norms = 2 if fields.flag("use_qk_norm", True) else 0
    dense = Layer(
        mixer=attention,
        mixer_siblings=(
            Siblings(name="qkv", matrices=(fused,)),
            Siblings(name="out", matrices=(out,)),
        ),
        mlp_siblings=gated_mlp(hidden, fields.size("intermediate_size")),
        vector_params=2 * hidden + head_norms * attention.head_dim,
        head_norms=head_norms,
    )
    experts = routed_experts(
        fields,
        total_key="num_experts",
        inner_key="moe_intermediate_size",
        router="mlp.gate",
        module="mlp.switch_mlp",
    )
    shared = fields.size("moe_intermediate_size") * fields.size("num_shared_experts", 1, least=0)
    sparse = replace(
        dense,
        mlp_siblings=shared_experts(hidden, shared) if shared else (),
        experts=replace(bare_router(experts, corrected=True), router_kernels=LLADA2_ROUTER_KERNELS),
    )
    return Network(
        fields=fields,
        layers=after_dense(dense, sparse, depth, fields.size("first_k_dense_replace", 1, least=0)),
        tied=fields.flag("tie_word_embeddings", False),
        module_prefix="language_model.",
        embedding_name="model.word_embeddings",
    )


def diffusion_gemma(fields: Fields) -> Network:
    """DiffusionGemma: the mixture of Gemma 4, and an MLP that takes in the last pass's guess.

    That guess is a mean of all embeddings, weighted by the last logits: a quantized network reads
    its table once more for it at every pass but the first of a canvas, which is not counted here.
    mlx-vlm keeps all but the experts and this MLP in 8 bits when it quantizes.
    """
    found = inner_network(fields, _diffusion_gemma_text, {})
    return replace(found, module_prefix="")


def _diffusion_gemma_text(fields: Fields) -> Network:
    depth = layer_count(fields)
    types = ["sliding_attention" if n % 6 else "full_attention" for n in range(1, depth)]
    sizes = {
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 2,
        "sliding_window": 1024,
        "num_experts": 128,
        "top_k_experts": 8,
        "vocab_size": 262_144,
        "layer_types": [*types, "full_attention"],
    }  # mlx-vlm
    always = {
        "attention_k_eq_v": True,
        "enable_moe_block": True,
        "num_kv_shared_layers": 0,
        "hidden_size_per_layer_input": 0,
        "tie_word_embeddings": True,
    }
    whole = filled(fields, sizes)
    found = gemma4_text(replace(whole, values={**whole.values, **always}))
    hidden, inner = whole.size("hidden_size"), whole.size("intermediate_size")
    module = "model.decoder.self_conditioning"
    return replace(
        found,
        layers=tuple(_denoising(layer) for layer in found.layers),
        entry=gated_mlp(hidden, inner, module=module),
        entry_vector_params=hidden,
        layers_path="model.decoder.layers",
        embedding_name="model.decoder.embed_tokens",
        protected_table=True,
    )


def _denoising(layer: Layer) -> Layer:
    """A layer of Gemma 4 with fused experts; encoding the text so far has a scale of its own."""
    assert layer.experts is not None
    return replace(
        layer,
        mixer_siblings=tuple(_protected(each) for each in layer.mixer_siblings),
        mlp_siblings=tuple(_protected(each) for each in layer.mlp_siblings),
        experts=with_fused_experts(layer.experts, "experts"),
        vector_params=layer.vector_params + 1,
    )


def _protected(siblings: Siblings) -> Siblings:
    return replace(
        siblings, matrices=tuple(replace(each, protected=True) for each in siblings.matrices)
    )
