"""Multi-head latent attention: DeepSeek V2 and V3, GLM 4 MoE Lite, and the mixer for others.

Queries may pass a low rank of their own; keys and values pass one latent vector of each token.
mlx-lm keeps that latent for V3 and GLM and unfolds it with two stacked matrices, one copy for each
head. For V2 it unfolds each token with one plain matrix and caches what comes out.

The routers of V3 and GLM choose by scores plus a learned correction for each expert, counted here
as the router's bias. Routers are bare arrays, so MLX quantizes none of them. mlx-lm casts
everything but that correction, so a release that stores it in 32 bits holds 2 bytes more for each
expert (30 kB in V3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from model.network.config.blocks import Network, gated_mlp, layer_count, routed_experts
from model.network.config.fields import Fields
from model.network.layer import Experts, Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import LatentAttention


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LatentBlock:
    """Latent attention with its matrices; `norms` counts the numbers of the low-rank norms."""

    mixer: LatentAttention
    siblings: tuple[Siblings, ...]
    norms: int


def deepseek_v2(fields: Fields) -> Network:
    """DeepSeek V2: a softmax router, and a cache of unfolded keys and values in mlx-lm."""
    return _mixture(
        fields, latent_block(fields, keeps_latent=False), dense_first=0, corrected=False
    )


def deepseek_v3(fields: Fields) -> Network:
    """DeepSeek V3 and R1, without the layer that predicts a second token."""
    return _mixture(fields, latent_block(fields), dense_first=0, corrected=True)


def glm4_moe_lite(fields: Fields) -> Network:
    """GLM 4.7 Flash: V3 with wider value heads."""
    return _mixture(fields, latent_block(fields), dense_first=1, corrected=True)


def latent_block(
    fields: Fields, *, module: str = "self_attn", out: str = "o_proj", keeps_latent: bool = True
) -> LatentBlock:
    """Latent attention as the config sizes it; `module` and `out` are MLX paths.

    Raises:
        InputError: a size is missing. `q_lora_rank` has to be there and may be null.
    """
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    latent, rope = fields.size("kv_lora_rank"), fields.size("qk_rope_head_dim")
    key, value = fields.size("qk_nope_head_dim"), fields.size("v_head_dim")
    rank = query_rank(fields)
    bias = fields.flag("attention_bias", False)  # transformers and mlx-lm

    def matrix(
        name: str, columns: int, depth: int, *, bias: bool = False, count: int = 1
    ) -> Matrix:
        path = f"{module}.{name}"
        return Matrix(name=path, columns=columns, depth=depth, bias=bias, count=count)

    query_columns = heads * (key + rope)
    down_kv = matrix("kv_a_proj_with_mqa", latent + rope, hidden, bias=bias)
    if rank is None:
        queries = (
            Siblings(name="q_kv", matrices=(matrix("q_proj", query_columns, hidden), down_kv)),
        )
    else:
        down_q = matrix("q_a_proj", rank, hidden, bias=bias)
        queries = (
            Siblings(name="q_kv_down", matrices=(down_q, down_kv)),
            Siblings(name="q_up", matrices=(matrix("q_b_proj", query_columns, rank),)),
        )
    unfolding, unfolded = None, ()
    if keeps_latent:
        to_latent = matrix("embed_q", latent, key, count=heads)
        from_latent = matrix("unembed_out", value, latent, count=heads)
        unfolding = Siblings(name="unfold", matrices=(to_latent, from_latent))
    else:
        up_kv = matrix("kv_b_proj", heads * (key + value), latent)
        unfolded = (Siblings(name="kv_up", matrices=(up_kv,)),)
    project = Siblings(name="out", matrices=(matrix(out, hidden, heads * value, bias=bias),))
    return LatentBlock(
        mixer=LatentAttention(
            query_heads=heads,
            latent_dim=latent,
            rope_dim=rope,
            key_dim=key,
            value_dim=value,
            unfolding=unfolding,
        ),
        siblings=(*queries, *unfolded, project),
        norms=latent + (rank or 0),
    )


def query_rank(fields: Fields) -> int | None:
    """The rank of the queries; None where the config says null, which is not its default.

    Raises:
        InputError: the field is absent: classes differ in the rank they would assume.
    """
    if "q_lora_rank" in fields.values and not fields.has("q_lora_rank"):
        return None
    return fields.size("q_lora_rank")


def shared_experts(
    hidden: int, inner: int, *, module: str = "mlp.shared_experts"
) -> tuple[Siblings, Siblings]:
    """The experts that every token passes, as the one MLP that they are together."""
    gate_up, down = gated_mlp(hidden, inner, module=module)
    return replace(gate_up, name="shared_gate_up"), replace(down, name="shared_down")


def bare_router(experts: Experts, *, corrected: bool) -> Experts:
    """The experts behind a router that MLX does not quantize, with a correction or without."""
    return replace(experts, router=replace(experts.router, quantizes=False, bias=corrected))


def _mixture(
    fields: Fields, attention: LatentBlock, *, dense_first: int, corrected: bool
) -> Network:
    """Dense layers, then mixtures with shared experts; mlx-lm never ties these.

    `dense_first` is what mlx-lm takes for an absent `first_k_dense_replace`.
    """
    hidden, depth = fields.size("hidden_size"), layer_count(fields)
    first_sparse = fields.size("first_k_dense_replace", dense_first, least=0)
    step = fields.size("moe_layer_freq", 1)  # mlx-lm; transformers has no such field
    block = Layer(
        mixer=attention.mixer,
        mixer_siblings=attention.siblings,
        vector_params=2 * hidden + attention.norms,
    )
    mixture = fields.has("n_routed_experts")  # null stands for a dense network (mlx-lm)
    sparse_at = [mixture and index >= first_sparse and index % step == 0 for index in range(depth)]
    dense = sparse = block
    if not all(sparse_at):
        dense = replace(block, mlp_siblings=gated_mlp(hidden, fields.size("intermediate_size")))
    if any(sparse_at):
        sparse = replace(
            block, mlp_siblings=_shared(fields), experts=_experts(fields, corrected=corrected)
        )
    return Network(
        fields=fields,
        layers=tuple(sparse if is_sparse else dense for is_sparse in sparse_at),
        tied=False,
    )


def _shared(fields: Fields) -> tuple[Siblings, ...]:
    count = fields.optional_size("n_shared_experts")
    if count is None:
        return ()
    return shared_experts(fields.size("hidden_size"), count * fields.size("moe_intermediate_size"))


def _experts(fields: Fields, *, corrected: bool) -> Experts:
    experts = routed_experts(
        fields,
        total_key="n_routed_experts",
        inner_key="moe_intermediate_size",
        router="mlp.gate",
        module="mlp.switch_mlp",
    )
    return bare_router(experts, corrected=corrected)
