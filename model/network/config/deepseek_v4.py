"""DeepSeek V4: a window in every layer, and beside it the past compressed in time.

`compress_ratios` says for each layer how many tokens one entry stands for: 0 is the window alone,
a small ratio has an indexer that chooses among the entries, the largest one (128) attends to all.
Keys are values, one of `head_dim` numbers for all heads; queries and the output pass low ranks.
The first `num_hash_layers` look their experts up by token. Modules are those of mlx-vlm 0.7.10;
mlx-lm 0.32.2 does not run this network.

Left out: the tokens that wait to be compressed, and that a runtime may skip the indexer's queries
while its choice holds everything (2 % of what a token reads in 8 bits).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from model.network.config.blocks import Network, layer_count, routed_experts
from model.network.config.fields import Fields
from model.network.config.hyper import HyperConnections, hyper_connections, hyper_head
from model.network.config.latent import bare_router, shared_experts
from model.network.layer import Experts, Layer
from model.network.matrix import Matrix, Siblings
from model.network.selection import Indexer, SelectedAttention

WITHOUT_INDEXER = 128
"""The ratio whose entries are all attended to (mlx-vlm)."""
OVERLAPPING = 4
"""The ratio whose windows overlap, which doubles a compressor's columns (mlx-vlm)."""
SCORE_PASSES = 8
"""Product, limit, scale, weights and sum of mlx-vlm's indexer, each on its own."""
BLOCK_KEYS, BLOCKS_FROM = 64, 16 * 64
"""Defaults of mlx-vlm's `index_block` and of `index_keep` blocks."""


def deepseek_v4(fields: Fields) -> Network:
    """DeepSeek V4 without the layer that predicts a second token.

    Raises:
        InputError: `compress_ratios` has no entry for a layer, or one that is not known.
    """
    streams = hyper_connections(fields)
    collapse, collapse_vectors = hyper_head(fields)
    hashed = fields.size("num_hash_layers", 0, least=0)
    mlps = _mlp(fields, streams, hashed=True), _mlp(fields, streams, hashed=False)
    return Network(
        fields=fields,
        layers=tuple(
            _with_mlp(_attention(fields, streams, ratio), mlps[index >= hashed])
            for index, ratio in enumerate(_ratios(fields))
        ),
        tied=fields.flag("tie_word_embeddings", False),  # mlx-vlm
        entry=(collapse,),  # it runs after the layers, which costs the same
        entry_vector_params=collapse_vectors,
    )


def _ratios(fields: Fields) -> tuple[int, ...]:
    depth = layer_count(fields)
    ratios = fields.items("compress_ratios")[:depth]  # what follows is the second token's layer
    if len(ratios) < depth:
        right = f"give a ratio for each of the {depth} layers"
        raise fields.refusal("compress_ratios", f"has {len(ratios)} entries", right)
    known = (0, OVERLAPPING, WITHOUT_INDEXER)
    unknown = next((each for each in ratios if each not in known), None)
    if unknown is not None:
        right = f"known are {', '.join(str(each) for each in known)}"
        raise fields.refusal("compress_ratios", f"holds {unknown!r}", right)
    return tuple(int(str(each)) for each in ratios)


def _attention(fields: Fields, streams: HyperConnections, ratio: int) -> Layer:
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    head_dim, rank = fields.size("head_dim"), fields.size("q_lora_rank")
    groups, out_rank = fields.size("o_groups"), fields.size("o_lora_rank")
    if heads % groups:
        right = "give a divisor of num_attention_heads"
        raise fields.refusal("o_groups", f"does not divide the {heads} attention heads", right)
    bias = fields.flag("attention_bias", False)  # mlx-vlm
    down = (_matrix("wq_a", rank, hidden), _matrix("wkv", head_dim, hidden))
    out_down = replace(_matrix("wo_a", out_rank, heads * head_dim // groups), count=groups)
    out = replace(_matrix("wo_b", hidden, groups * out_rank), bias=bias)
    layer = Layer(
        mixer=SelectedAttention(
            query_heads=heads,
            entry_elements=head_dim,
            head_columns=2 * head_dim,
            window=fields.size("sliding_window"),
            tokens_per_entry=ratio or None,
            indexer=_indexer(fields, ratio) if ratio == OVERLAPPING else None,
        ),
        mixer_siblings=(
            streams.attention,
            Siblings(name="q_kv_down", matrices=down),
            Siblings(name="q_up", matrices=(_matrix("wq_b", heads * head_dim, rank),)),
            Siblings(name="out_down", matrices=(out_down,)),
            Siblings(name="out", matrices=(out,)),
        ),
        vector_params=2 * hidden + rank + head_dim + heads + streams.vector_params,
    )
    if not ratio:
        return layer
    layer = _compressing(layer, "compressor", ratio, head_dim, hidden)
    return layer if ratio == WITHOUT_INDEXER else _indexing(fields, layer, ratio)


def _compressing(layer: Layer, module: str, ratio: int, width: int, hidden: int) -> Layer:
    """The layer with what makes one entry of `width` numbers of `ratio` tokens, before its end."""
    columns = width * (2 if ratio == OVERLAPPING else 1)
    pair = tuple(_matrix(f"{module}.{name}", columns, hidden) for name in ("wkv", "wgate"))
    return replace(
        layer,
        mixer_siblings=_before_output(layer, Siblings(name=module, matrices=pair)),
        vector_params=layer.vector_params + width,
        table_params=layer.table_params + ratio * columns,
    )


def _indexing(fields: Fields, layer: Layer, ratio: int) -> Layer:
    hidden, rank = fields.size("hidden_size"), fields.size("q_lora_rank")
    heads, width = fields.size("index_n_heads"), fields.size("index_head_dim")
    layer = _compressing(layer, "indexer.compressor", ratio, width, hidden)
    queries = Siblings(name="index_q", matrices=(_matrix("indexer.wq_b", heads * width, rank),))
    weights = Siblings(
        name="index_weights", matrices=(_matrix("indexer.weights_proj", heads, hidden),)
    )
    return replace(layer, mixer_siblings=_before_output(layer, queries, weights))


def _before_output(layer: Layer, *added: Siblings) -> tuple[Siblings, ...]:
    """The layer's matrices with these ahead of the two of the output."""
    *others, down, out = layer.mixer_siblings
    return (*others, *added, down, out)


def _indexer(fields: Fields, ratio: int) -> Indexer:
    return Indexer(
        heads=fields.size("index_n_heads"),
        key_dim=fields.size("index_head_dim"),
        tokens_per_key=ratio,
        chosen_tokens=ratio * fields.size("index_topk"),
        score_passes=SCORE_PASSES,
        block_keys=BLOCK_KEYS,
        blocks_from=BLOCKS_FROM,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Mlp:
    siblings: tuple[Siblings, ...]
    experts: Experts
    table_params: int


def _mlp(fields: Fields, streams: HyperConnections, *, hashed: bool) -> _Mlp:
    """A shared expert beside routed ones, chosen by a table of tokens where `hashed`."""
    hidden, inner = fields.size("hidden_size"), fields.size("moe_intermediate_size")
    shared = shared_experts(
        hidden, fields.size("n_shared_experts") * inner, module="ffn.shared_experts"
    )
    experts = routed_experts(
        fields,
        total_key="n_routed_experts",
        inner_key="moe_intermediate_size",
        router="ffn.gate",
        module="ffn.switch_mlp",
    )
    table = fields.size("vocab_size") * experts.top_k if hashed else 0
    return _Mlp(
        siblings=(streams.mlp, *shared),
        experts=bare_router(experts, corrected=not hashed),
        table_params=table,
    )


def _with_mlp(layer: Layer, mlp: _Mlp) -> Layer:
    return replace(
        layer,
        mlp_siblings=mlp.siblings,
        experts=mlp.experts,
        table_params=layer.table_params + mlp.table_params,
    )


def _matrix(name: str, columns: int, depth: int) -> Matrix:
    return Matrix(name=f"attn.{name}", columns=columns, depth=depth)
