"""Mixtures whose router adds a learned bias to each expert's score: GLM 4.5, MiniMax M2, Hy 3.

The biases are one number for each expert: the router's own where they are part of its module, else
among the vectors. mlx-lm casts weights for a file but keeps these in 32 bits (`cast_predicate`),
two bytes more for each expert than are counted here.
"""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import (
    Network,
    full_attention,
    gated_mlp,
    layer_count,
    projections,
    routed_experts,
)
from model.network.config.fields import Fields
from model.network.config.latent import bare_router, shared_experts
from model.network.layer import Experts, Layer
from model.network.matrix import Siblings


def glm4_moe(fields: Fields) -> Network:
    """GLM 4.5 and later without latent attention: first layers dense, then a shared expert.

    mlx-lm never ties, and multiplies with a router that is a bare array and so is not quantized.
    """
    hidden, depth = fields.size("hidden_size"), layer_count(fields)
    attention = full_attention(fields)
    head_norms = 2 if fields.flag("use_qk_norm") else 0
    dense = Layer(
        mixer=attention,
        mixer_siblings=projections(hidden, attention, bias=fields.flag("attention_bias")),
        mlp_siblings=gated_mlp(hidden, fields.size("intermediate_size")),
        vector_params=2 * hidden + head_norms * attention.head_dim,
        head_norms=head_norms,
    )
    experts = routed_experts(
        fields,
        total_key="n_routed_experts",
        inner_key="moe_intermediate_size",
        router="mlp.gate",
        module="mlp.switch_mlp",
    )
    inner = fields.size("moe_intermediate_size") * fields.size("n_shared_experts")
    sparse = replace(
        dense,
        mlp_siblings=shared_experts(hidden, inner),
        experts=bare_router(experts, corrected=True),
    )
    layers = after_dense(dense, sparse, depth, fields.size("first_k_dense_replace", least=0))
    return Network(fields=fields, layers=layers, tied=False)


def minimax_m2(fields: Fields) -> Network:
    """MiniMax M2: a norm over all query and over all key heads, and no shared expert."""
    hidden = fields.size("hidden_size")
    attention = full_attention(fields)
    heads = attention.query_heads + attention.kv_heads
    normed = fields.flag("use_qk_norm", True)  # mlx-lm
    experts = routed_experts(
        fields,
        total_key="num_local_experts",
        inner_key="intermediate_size",
        router="block_sparse_moe.gate",
        module="block_sparse_moe.switch_mlp",
        protected=True,
    )
    layer = Layer(
        mixer=attention,
        mixer_siblings=projections(hidden, attention),
        experts=experts,
        vector_params=2 * hidden + normed * heads * attention.head_dim + experts.num_experts,
    )
    tied = fields.flag("tie_word_embeddings", False)  # mlx-lm
    return Network(fields=fields, layers=(layer,) * layer_count(fields), tied=tied)


def hy_v3(fields: Fields) -> Network:
    """Hy 3, which neither mlx-lm 0.32.2 nor mlx-vlm runs: shapes and paths are transformers'.

    Raises:
        InputError: `mlp_layer_types` is not one of dense and sparse for each layer.
    """
    hidden = fields.size("hidden_size")
    attention = full_attention(fields, head_dim=128)  # transformers
    bias = fields.flag("attention_bias", False)  # transformers
    mlp_bias = fields.flag("mlp_bias", False)  # transformers
    dense = Layer(
        mixer=attention,
        mixer_siblings=projections(hidden, attention, bias=bias, out_bias=bias),
        mlp_siblings=gated_mlp(hidden, fields.size("intermediate_size"), bias=mlp_bias),
        vector_params=2 * hidden + 2 * attention.head_dim,
        head_norms=2,
    )
    experts = routed_experts(
        fields,
        total_key="num_experts",
        inner_key="moe_intermediate_size",
        router="mlp.gate",
        module="mlp.experts",
    )
    inner = fields.size("moe_intermediate_size") * fields.size("num_shared_experts", 1)
    gate_up, down = gated_mlp(hidden, inner, module="mlp.shared_experts", bias=mlp_bias)
    sparse = replace(
        dense,
        mlp_siblings=(replace(gate_up, name="shared_gate_up"), replace(down, name="shared_down")),
        experts=with_fused_experts(bare_router(experts, corrected=False), "mlp.experts"),
        vector_params=dense.vector_params + experts.num_experts,
    )
    kinds = {"dense": dense, "sparse": sparse}
    tied = fields.flag("tie_word_embeddings", False)  # transformers
    layers = tuple(kinds[kind] for kind in _mlp_types(fields))
    return Network(fields=fields, layers=layers, tied=tied)


def with_fused_experts(experts: Experts, module: str) -> Experts:
    """The same mixture with gate and up in one matrix; `module` is its MLX path."""
    gate, up, down = experts.matrices
    fused = replace(gate, name=f"{module}.gate_up_proj", columns=gate.columns + up.columns)
    out = replace(down, name=f"{module}.down_proj")
    return replace(
        experts,
        siblings=(
            Siblings(name="gate_up", matrices=(fused,)),
            Siblings(name="down", matrices=(out,)),
        ),
    )


def after_dense(dense: Layer, sparse: Layer, depth: int, first_sparse: int) -> tuple[Layer, ...]:
    """Dense layers up to the first sparse one."""
    return tuple(dense if index < first_sparse else sparse for index in range(depth))


def _mlp_types(fields: Fields) -> tuple[str, ...]:
    depth = layer_count(fields)
    default = ("dense", *("sparse",) * (depth - 1))  # transformers
    types = tuple(str(each) for each in fields.items("mlp_layer_types")) or default
    if len(types) != depth:
        right = f"name one type for each of the {depth} layers"
        raise fields.refusal("mlp_layer_types", f"has {len(types)} entries", right)
    unknown = next((each for each in types if each not in ("dense", "sparse")), None)
    if unknown is not None:
        raise fields.refusal("mlp_layer_types", f"holds {unknown!r}", "name dense or sparse ones")
    return types
