"""Ling 3 (Bailing MoE V3): gated delta nets with a decay for each key, between latent attentions.

Every `layer_group_size`-th layer attends through a latent vector, and so do those after the last
whole group; the first `first_k_dense_replace` have a dense MLP. mlx-lm 0.32.2 keeps the two
tables, the routers and most of the attention's matrices in 16 bits when it quantizes the rest.
"""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import Network, gated_mlp, layer_count, routed_experts
from model.network.config.delta import delta_macs
from model.network.config.fields import Fields
from model.network.config.latent import bare_router, latent_block, shared_experts
from model.network.layer import Experts, Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import Recurrence

ARCHITECTURE = "BailingMoeV3ForCausalLM"


def bailing_hybrid(fields: Fields) -> Network:
    """Ling 3.

    Raises:
        InputError: an older network of the same `model_type`, or a variant mlx-lm does not run.
    """
    _check_variant(fields)
    hidden, depth = fields.size("hidden_size"), layer_count(fields)
    group = fields.size("layer_group_size")
    first_sparse = fields.size("first_k_dense_replace", 1, least=0)  # mlx-lm
    attention, delta = _attention(fields), _delta_net(fields)
    dense: tuple[Siblings, ...] = ()
    shared, experts = (), None
    if first_sparse:
        dense = gated_mlp(hidden, fields.size("intermediate_size"))
    if first_sparse < depth:
        inner = fields.size("moe_shared_expert_intermediate_size")
        shared = shared_experts(hidden, fields.size("num_shared_experts", 1) * inner)  # mlx-lm
        experts = _experts(fields)
    return Network(
        fields=fields,
        layers=tuple(
            replace(
                attention if (index + 1) % group == 0 or index >= depth // group * group else delta,
                mlp_siblings=dense if index < first_sparse else shared,
                experts=None if index < first_sparse else experts,
            )
            for index in range(depth)
        ),
        tied=fields.flag("tie_word_embeddings", False),  # mlx-lm
        embedding_name="model.word_embeddings",
        quantizes_tables=False,
    )


def _check_variant(fields: Fields) -> None:
    if ARCHITECTURE not in fields.items("architectures"):
        wrong, right = "is not known under this model_type", f"known is [{ARCHITECTURE!r}]"
        raise fields.refusal("architectures", wrong, right)
    for key in ("no_kda_lora", "kda_safe_gate", "rope_interleave"):
        if not fields.flag(key, True):  # mlx-lm
            raise fields.refusal(key, "is a variant that mlx-lm does not run", "give true")


def _attention(fields: Fields) -> Layer:
    """Latent attention with a gate for each head; only the output is quantized."""
    hidden = fields.size("hidden_size")
    plain = replace(fields, values={**fields.values, "attention_bias": False})  # mlx-lm has none
    block = latent_block(plain, module="attention", out="dense")
    first, *between, out = block.siblings
    gate = Matrix(name="attention.g_proj", columns=fields.size("num_attention_heads"), depth=hidden)
    reads = replace(first, matrices=(*first.matrices, gate))
    unfolding = block.mixer.unfolding
    return Layer(
        mixer=replace(block.mixer, unfolding=None if unfolding is None else _in_16_bits(unfolding)),
        mixer_siblings=(_in_16_bits(reads), *(_in_16_bits(each) for each in between), out),
        vector_params=2 * hidden + block.norms,
    )


def _delta_net(fields: Fields) -> Layer:
    """Kimi's delta attention: the decay has a value for each head and key dimension.

    Its multiply-accumulates are those of the gated delta net (mlx-lm 0.32.2, `gated_delta.py`).
    """
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    head_dim, kernel = fields.size("head_dim"), fields.size("short_conv_kernel_size", 4)  # mlx-lm
    inner = heads * head_dim
    reads = tuple(
        Matrix(name=f"attention.{name}_proj", columns=inner, depth=hidden) for name in "qkvfg"
    )
    update = Matrix(name="attention.b_proj", columns=heads, depth=hidden, quantizes=False)
    out = Matrix(name="attention.o_proj", columns=hidden, depth=inner)
    decays = heads + inner  # A_log and dt_bias
    return Layer(
        mixer=Recurrence(
            state_elements=heads * head_dim * head_dim,
            conv_elements=3 * (kernel - 1) * inner,
            macs=delta_macs(heads=heads, key_dim=head_dim, value_dim=head_dim) + 3 * kernel * inner,
        ),
        mixer_siblings=(
            Siblings(name="in", matrices=(*reads, update)),
            Siblings(name="out", matrices=(out,)),
        ),
        vector_params=2 * hidden + 3 * kernel * inner + decays + head_dim,
    )


def _experts(fields: Fields) -> Experts:
    experts = routed_experts(
        fields,
        total_key="num_experts",
        inner_key="moe_intermediate_size",
        router="mlp.gate",
        module="mlp.switch_mlp",
    )
    return bare_router(experts, corrected=True)


def _in_16_bits(siblings: Siblings) -> Siblings:
    """The same matrices, which `mlx_lm.convert` does not quantize."""
    kept = tuple(replace(matrix, quantizes=False) for matrix in siblings.matrices)
    return replace(siblings, matrices=kept)
