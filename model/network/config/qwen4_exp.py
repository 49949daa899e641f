"""Qwen 3.8 Flash Next: gated delta nets and sparse attention between several residual streams.

Every block reads `hc_count` streams through a low rank and spreads what it made over them; there
are no other norms before its halves. Attention has an indexer that keeps the mean key of every
`indexer_compress_ratio` tokens and chooses `indexer_budget` tokens. One layer adds embeddings of
the last tokens together: hashed n-grams look up rows of a table that no token multiplies with.

Modules are those of mlx-vlm 0.7.10; mlx-lm 0.32.2 does not run this network. mlx-vlm leaves the
choice to its own kernel for several rows only: a single row masks what was not chosen and reads
every key and value. It also keeps an indexer's key of every token, and copies them at each.
A row of the n-gram table splits into groups of 32 at most, which mlx-vlm then takes for it; here
it stays in 16 bits where the groups are wider.
"""

from __future__ import annotations

import math
from dataclasses import replace

from model.network.config.blocks import Network, inner_network, layer_count, routed_experts
from model.network.config.delta import delta_net, gated_attention, shared_expert
from model.network.config.fields import Fields
from model.network.layer import Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import Attention
from model.network.selection import Indexer, SelectedAttention

KINDS = ("linear_attention", "full_attention")
SCORE_PASSES = 4
"""Product, limit and sum of mlx-vlm's indexer, each on its own."""
MOST_HEADS = 64
"""Far above any n-gram table; each head costs a search for a prime."""


def qwen4_exp(fields: Fields) -> Network:
    """The language model inside Qwen 3.8 Flash Next."""
    return inner_network(fields, qwen4_exp_text, {})


def qwen4_exp_text(fields: Fields) -> Network:
    """Qwen 3.8 Flash Next's language model alone.

    Raises:
        InputError: layers of an unknown type, or more than one with n-grams.
    """
    depth = layer_count(fields)
    types = fields.items("layer_types")
    if len(types) != depth or any(kind not in KINDS for kind in types):
        right = f"name {' or '.join(KINDS)} for each of the {depth} layers"
        raise fields.refusal("layer_types", "does not fit the layers", right)
    with_ngrams = fields.items("ple_layer_ids")  # counted from 1
    if len(with_ngrams) > 1:
        raise fields.refusal("ple_layer_ids", "names more than one layer", "give one at most")
    delta = _block(fields, delta_net(fields, ("qkv", "z", "b", "a")))
    attention = _block(fields, _attention(fields))
    layers = [attention if kind == "full_attention" else delta for kind in types]
    lookups: tuple[Matrix, ...] = ()
    for number in with_ngrams:
        if not isinstance(number, int) or not 1 <= number <= depth:
            right = f"give a number from 1 to {depth}"
            raise fields.refusal("ple_layer_ids", f"holds {number!r}", right)
        layers[number - 1] = _with_ngrams(fields, layers[number - 1])
        lookups = (_ngram_table(fields, number - 1),)
    down, up = _residual(fields, "model.hyper_connection_mixer", injects=False)
    return Network(
        fields=fields,
        layers=tuple(layers),
        tied=fields.flag("tie_word_embeddings", False),  # mlx-vlm
        norm_vectors=fields.size("hc_count"),
        entry=(down, up),  # they run after the layers, which costs the same
        lookups=lookups,
    )


def _residual(fields: Fields, module: str, *, injects: bool) -> tuple[Siblings, Siblings]:
    """What makes one input of the streams, and says how the output is spread where it `injects`."""
    streams, rank = fields.size("hc_count"), fields.size("hc_lowrank")
    width = streams * fields.size("hidden_size")
    down = Matrix(name=f"{module}.input_mix_weight_down", columns=rank, depth=width)
    spread = Matrix(name=f"{module}.block_inject_weight", columns=streams, depth=width)
    up = Matrix(name=f"{module}.input_mix_weight_up", columns=width, depth=rank)
    return (
        Siblings(name=f"{module}.down", matrices=(down, spread) if injects else (down,)),
        Siblings(name=f"{module}.up", matrices=(up,)),
    )


def _block(fields: Fields, mixing: Layer) -> Layer:
    """A mixture in every layer, and streams in place of the two norms."""
    hidden = fields.size("hidden_size")
    experts = routed_experts(
        fields,
        total_key="num_experts",
        inner_key="moe_intermediate_size",
        router="mlp.gate",
        module="mlp.switch_mlp",
        protected=True,
    )
    before = _residual(fields, "attn_hyper_connection", injects=True)
    between = _residual(fields, "mlp_hyper_connection", injects=True)
    return replace(
        mixing,
        mixer_siblings=(*before, *mixing.mixer_siblings),
        mlp_siblings=(*between, *shared_expert(fields)),
        experts=experts,
        vector_params=mixing.vector_params + 2 * (fields.size("hc_count") - 1) * hidden,
    )


def _attention(fields: Fields) -> Layer:
    layer = gated_attention(fields, None)
    heads = layer.mixer
    if not isinstance(heads, Attention):
        raise AssertionError("gated attention is attention")
    queries, width = fields.size("indexer_n_heads"), fields.size("indexer_head_dim")
    projected = (queries + fields.size("indexer_kv_heads")) * width
    index = Matrix(
        name="self_attn.indexer.index_qk_proj",
        columns=projected,
        depth=fields.size("hidden_size"),
    )
    qkv, out = layer.mixer_siblings
    return replace(
        layer,
        mixer=SelectedAttention(
            query_heads=heads.query_heads,
            kv_heads=heads.kv_heads,
            entry_elements=heads.cached_elements_per_token(),
            head_columns=heads.widths,
            indexer=Indexer(
                heads=queries,
                key_dim=width,
                tokens_per_key=fields.size("indexer_compress_ratio"),
                chosen_tokens=fields.size("indexer_budget"),
                score_passes=SCORE_PASSES,
                keeps_tokens=True,
            ),
            one_row_reads_all=True,
        ),
        mixer_siblings=(replace(qkv, matrices=(*qkv.matrices, index)), out),
        vector_params=layer.vector_params + 2 * width,
    )


def _with_ngrams(fields: Fields, layer: Layer) -> Layer:
    """The layer that adds n-gram embeddings to its streams, through a gate and a convolution."""
    hidden, width = fields.size("hidden_size"), fields.size("ple_embed_dim")
    streams = fields.size("hc_count") * hidden
    kernel = fields.size("ple_conv_kernel_size")
    pair = (
        Matrix(name="ple.key_proj", columns=streams, depth=width),
        Matrix(name="ple.value_proj", columns=hidden, depth=width),
    )
    # The integers that hash: a factor for each token, a size and an offset for each head.
    hashing = fields.size("ngram_size") + 2 * _ngram_heads(fields)
    return replace(
        layer,
        mixer_siblings=(Siblings(name="ngrams", matrices=pair), *layer.mixer_siblings),
        vector_params=layer.vector_params + (3 + kernel) * streams,
        table_params=hashing,
    )


def _ngram_heads(fields: Fields) -> int:
    return (fields.size("ngram_size", least=2) - 1) * fields.size("heads_per_ngram")


def _ngram_table(fields: Fields, index: int) -> Matrix:
    """A table with as many rows for each head as the next prime says, so that hashes differ."""
    heads = _ngram_heads(fields)
    if heads > MOST_HEADS:
        right = f"give at most {MOST_HEADS} heads in all"
        raise fields.refusal("heads_per_ngram", f"makes {heads} of them", right)
    multiple = fields.size("make_ngram_vocab_size_divisible_by")
    rows, prime = 0, fields.size("ngram_vocab_size_base") - 1
    for _ in range(heads):
        prime = _next_prime(prime)
        rows += prime
    return Matrix(
        name=f"model.layers.{index}.ple.ple_embedding.ngram_embedding",
        columns=multiple * -(-rows // multiple),
        depth=fields.size("ple_embed_dim") // heads,
    )


def _next_prime(number: int) -> int:
    number += 1
    while number < 2 or any(number % each == 0 for each in range(2, math.isqrt(number) + 1)):
        number += 1
    return number
