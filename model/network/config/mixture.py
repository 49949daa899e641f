"""Mixtures of experts: Mixtral, Phi-MoE, Qwen 2 and 3 MoE, GPT-OSS.

mlx-lm quantizes the routers of Qwen 3 and GPT-OSS to 8 bits whatever the rest gets, and those of
the others like everything else.
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
    routed_experts,
)
from model.network.config.fields import Fields
from model.network.layer import Layer
from model.network.matrix import Matrix, Siblings


def mixtral(fields: Fields) -> Network:
    """Mixtral: Llama's attention, and eight large experts in place of the MLP."""
    hidden = fields.size("hidden_size")
    attention = full_attention(fields)
    layer = Layer(
        mixer=attention,
        mixer_siblings=projections(hidden, attention),
        experts=routed_experts(
            fields,
            total_key="num_local_experts",
            inner_key="intermediate_size",
            router="block_sparse_moe.gate",
            module="block_sparse_moe.switch_mlp",
        ),
        vector_params=2 * hidden,
    )
    tied = fields.flag("tie_word_embeddings", False)  # transformers and mlx-lm
    return Network(fields=fields, layers=(layer,) * layer_count(fields), tied=tied)


def phimoe(fields: Fields) -> Network:
    """Phi 3.5 MoE: Mixtral with biases on attention, norms and head, never tied (mlx-lm)."""
    found = mixtral(fields)
    layer, hidden = found.layers[0], fields.size("hidden_size")
    biased = replace(
        layer,
        mixer_siblings=projections(hidden, full_attention(fields), bias=True, out_bias=True),
        vector_params=2 * layer.vector_params,
    )
    layers = (biased,) * len(found.layers)
    return replace(found, layers=layers, tied=False, norm_vectors=2, head_bias=True)


def qwen2_moe(fields: Fields) -> Network:
    """Qwen 1.5 and 2 MoE: routed experts beside a shared one with a gate of one column.

    mlx-lm makes every layer sparse and never ties.
    """
    hidden = fields.size("hidden_size")
    attention = full_attention(fields, multi_head=True)
    shared_inner = fields.size("shared_expert_intermediate_size")
    gate_up, down = gated_mlp(hidden, shared_inner, module="mlp.shared_expert")
    gate = Matrix(name="mlp.shared_expert_gate", columns=1, depth=hidden)
    layer = Layer(
        mixer=attention,
        mixer_siblings=projections(hidden, attention, bias=True),
        mlp_siblings=(
            Siblings(name="shared_gate_up", matrices=(*gate_up.matrices, gate)),
            Siblings(name="shared_down", matrices=down.matrices),
        ),
        experts=routed_experts(
            fields,
            total_key="num_experts",
            inner_key="moe_intermediate_size",
            router="mlp.gate",
            module="mlp.switch_mlp",
        ),
        vector_params=2 * hidden,
    )
    return Network(fields=fields, layers=(layer,) * layer_count(fields), tied=False)


def qwen3_moe(fields: Fields) -> Network:
    """Qwen 3 MoE: Qwen 3's attention; layers are sparse but for those the config names.

    The defaults are those of transformers; mlx-lm insists that these fields are stated.

    Raises:
        InputError: `mlp_only_layers` holds something else than layer numbers.
    """
    hidden, depth = fields.size("hidden_size"), layer_count(fields)
    attention = full_attention(fields)
    step = fields.size("decoder_sparse_step", 1)
    dense_layers = fields.items("mlp_only_layers")
    if not all(isinstance(index, int) for index in dense_layers):
        right = "give the numbers of the layers without experts"
        raise fields.refusal("mlp_only_layers", "holds more than whole numbers", right)
    sparse = Layer(
        mixer=attention,
        mixer_siblings=projections(hidden, attention),
        experts=routed_experts(
            fields,
            total_key="num_experts",
            inner_key="moe_intermediate_size",
            router="mlp.gate",
            module="mlp.switch_mlp",
            protected=True,
        ),
        vector_params=2 * hidden + 2 * attention.head_dim,
        head_norms=2,
    )
    mlp = gated_mlp(hidden, fields.size("intermediate_size"))
    dense = replace(sparse, mlp_siblings=mlp, experts=None)
    return Network(
        fields=fields,
        layers=tuple(
            dense if index in dense_layers or (index + 1) % step else sparse
            for index in range(depth)
        ),
        tied=fields.flag("tie_word_embeddings", False),
    )


def qwen3_vl_moe(fields: Fields) -> Network:
    """The Qwen 3 MoE inside a vision model, which states `tie_word_embeddings` outside."""
    tied = fields.flag("tie_word_embeddings", False)  # transformers
    return inner_network(fields, qwen3_moe, {"tie_word_embeddings": tied})


def gpt_oss(fields: Fields) -> Network:
    """GPT-OSS: biases everywhere, a learned sink for each query head, every other layer sliding.

    mlx-lm never ties.
    """
    hidden, depth = fields.size("hidden_size"), layer_count(fields)
    full = full_attention(fields, head_dim=64)  # transformers and mlx-lm
    siblings = projections(hidden, full, bias=True, out_bias=True)
    experts = routed_experts(
        fields,
        total_key="num_local_experts",
        inner_key="intermediate_size",
        router="mlp.router",
        module="mlp.experts",
        bias=True,
        protected=True,
    )
    alternating = ["full_attention" if index % 2 else "sliding_attention" for index in range(depth)]
    return Network(
        fields=fields,
        layers=tuple(
            Layer(
                mixer=attention,
                mixer_siblings=siblings,
                experts=experts,
                vector_params=2 * hidden + full.query_heads,
            )
            for attention in attention_by_type(fields, full, alternating)
        ),
        tied=False,
    )
