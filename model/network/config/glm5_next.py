"""GLM 5.3 Flash: latent attention over a selection in every fourth layer, delta nets between.

The delta nets are Kimi's (a decay for each head and key dimension), with low ranks for decay and
output gate. Attention keeps one latent of each token; an indexer keeps one key of every
`index_kpool` tokens and chooses whole pools. Modules are those of mlx-vlm 0.7.10, which takes up
to 16 rows one by one, each with its query folded to the latents; mlx-lm 0.32.2 does not run this
network. The tokens of the last, unfinished pool (fewer than `index_kpool`) are left out.
"""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import Network, inner_network, layer_count, routed_experts
from model.network.config.delta import delta_macs
from model.network.config.fields import Fields
from model.network.config.hyper import HyperConnections, hyper_connections
from model.network.config.latent import bare_router
from model.network.layer import Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import Recurrence
from model.network.selection import Indexer, SelectedAttention

CHOOSING = ("indexed_attention", "deepseek_sparse_attention", "full_attention")
"""What transformers and mlx-vlm call the layers that attend."""
SCORE_PASSES = 6
"""Product, limit, weights and sum of mlx-vlm's indexer, each on its own."""


def glm5_next(fields: Fields) -> Network:
    """The language model inside GLM 5.3 Flash."""
    return inner_network(fields, glm5_next_text, {})


def glm5_next_text(fields: Fields) -> Network:
    """GLM 5.3 Flash's language model alone, without the layer that predicts a second token.

    Raises:
        InputError: layers of an unknown type, or one that takes over the choice of another.
    """
    kinds = _types(fields, "layer_types", ("linear_attention", *CHOOSING))
    mlps = _types(fields, "mlp_layer_types", ("dense", "sparse"))
    if any(each != "full" for each in fields.items("indexer_types")):
        right = "give full for each layer"
        raise fields.refusal("indexer_types", "has layers without an indexer of their own", right)
    streams = hyper_connections(fields)
    delta, attention = _delta_net(fields, streams), _attention(fields, streams)
    return Network(
        fields=fields,
        layers=tuple(
            _with_mlp(
                fields, attention if kind in CHOOSING else delta, streams, sparse=mlp == "sparse"
            )
            for kind, mlp in zip(kinds, mlps, strict=True)
        ),
        tied=fields.flag("tie_word_embeddings", False),  # mlx-vlm
    )


def _types(fields: Fields, key: str, known: tuple[str, ...]) -> tuple[str, ...]:
    depth = layer_count(fields)
    types = tuple(str(each) for each in fields.items(key))
    if len(types) != depth:
        right = f"name one type for each of the {depth} layers"
        raise fields.refusal(key, f"has {len(types)} entries", right)
    unknown = next((each for each in types if each not in known), None)
    if unknown is not None:
        raise fields.refusal(key, f"holds {unknown!r}", f"known are {', '.join(known)}")
    return types


def _delta_net(fields: Fields, streams: HyperConnections) -> Layer:
    hidden, heads = fields.size("hidden_size"), fields.size("linear_num_heads")
    head_dim, kernel = fields.size("linear_head_dim"), fields.size("linear_conv_kernel_dim")
    inner = heads * head_dim
    low = _matrix("fbg_a_proj", 2 * head_dim + heads, hidden)
    up = tuple(_matrix(name, inner, head_dim) for name in ("f_b_proj", "g_b_proj"))
    decays = heads + inner  # A_log and dt_bias
    return Layer(
        mixer=Recurrence(
            state_elements=heads * head_dim * head_dim,
            conv_elements=3 * (kernel - 1) * inner,
            macs=delta_macs(heads=heads, key_dim=head_dim, value_dim=head_dim) + 3 * kernel * inner,
        ),
        mixer_siblings=(
            streams.attention,
            Siblings(name="in", matrices=(_matrix("qkv_proj", 3 * inner, hidden), low)),
            # Each reads its own part of what `low` made.
            *(Siblings(name=each.name, matrices=(each,)) for each in up),
            Siblings(name="out", matrices=(_matrix("o_proj", hidden, inner),)),
        ),
        vector_params=2 * hidden + 3 * kernel * inner + decays + head_dim + streams.vector_params,
    )


def _attention(fields: Fields, streams: HyperConnections) -> Layer:
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    latent, rank = fields.size("kv_lora_rank"), fields.size("q_lora_rank")
    key, value = fields.size("qk_nope_head_dim"), fields.size("v_head_dim")
    if fields.size("qk_rope_head_dim", least=0):
        raise fields.refusal("qk_rope_head_dim", "is not what mlx-vlm runs", "give 0")
    bias = fields.flag("attention_bias", False)  # mlx-vlm
    down = replace(_matrix("qkv_a_proj", rank + latent, hidden), bias=bias)
    folded = replace(_matrix("embed_q", latent, key), count=heads)
    unfolded = replace(_matrix("unembed_out", value, latent), count=heads)
    out = replace(_matrix("o_proj", hidden, heads * value), bias=bias)
    indexer = _indexer(fields)
    index_queries = _matrix("indexer.wq_b", indexer.heads * indexer.key_dim, rank)
    gate = _matrix("indexer.index_kpool_compress_gate", indexer.key_dim, hidden)
    index_keys = (
        _matrix("indexer.wk", indexer.key_dim, hidden),
        _matrix("indexer.weights_proj", indexer.heads, hidden),
        replace(gate, quantizes=False),
    )
    norms = 2 * hidden + rank + latent + 2 * indexer.key_dim
    return Layer(
        mixer=SelectedAttention(
            query_heads=heads, entry_elements=latent, head_columns=2 * latent, indexer=indexer
        ),
        mixer_siblings=(
            streams.attention,
            Siblings(name="q_kv_down", matrices=(down,)),
            Siblings(name="q_up", matrices=(_matrix("q_b_proj", heads * key, rank), index_queries)),
            Siblings(name="index_k", matrices=index_keys),
            Siblings(name="fold", matrices=(folded,)),
            Siblings(name="unfold", matrices=(unfolded,)),
            Siblings(name="out", matrices=(out,)),
        ),
        vector_params=norms + streams.vector_params,
        table_params=indexer.tokens_per_key * indexer.key_dim,
    )


def _indexer(fields: Fields) -> Indexer:
    return Indexer(
        heads=fields.size("index_n_heads"),
        key_dim=fields.size("index_head_dim"),
        tokens_per_key=fields.size("index_kpool"),
        chosen_tokens=fields.size("index_topk"),
        score_passes=SCORE_PASSES,
    )


def _with_mlp(fields: Fields, layer: Layer, streams: HyperConnections, *, sparse: bool) -> Layer:
    hidden = fields.size("hidden_size")
    if not sparse:
        dense = _fused_mlp(hidden, fields.size("intermediate_size"), "mlp")
        return replace(layer, mlp_siblings=(streams.mlp, *dense))
    inner = fields.size("n_shared_experts") * fields.size("moe_intermediate_size")
    experts = routed_experts(
        fields,
        total_key="n_routed_experts",
        inner_key="moe_intermediate_size",
        router="mlp.gate",
        module="mlp.switch_mlp",
    )
    return replace(
        layer,
        mlp_siblings=(streams.mlp, *_fused_mlp(hidden, inner, "mlp.shared_experts")),
        experts=bare_router(experts, corrected=True),
    )


def _fused_mlp(hidden: int, inner: int, module: str) -> tuple[Siblings, Siblings]:
    """Gate and up in one matrix, then down."""
    gate_up = Matrix(name=f"{module}.gate_up_proj", columns=2 * inner, depth=hidden)
    down = Matrix(name=f"{module}.down_proj", columns=hidden, depth=inner)
    return (
        Siblings(name=f"{module}.gate_up", matrices=(gate_up,)),
        Siblings(name=f"{module}.down", matrices=(down,)),
    )


def _matrix(name: str, columns: int, depth: int) -> Matrix:
    return Matrix(name=f"self_attn.{name}", columns=columns, depth=depth)
