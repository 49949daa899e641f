"""The pieces that the families share: heads, projections, gated MLP, experts, and their frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from model.network.config.fields import Fields
from model.network.layer import Experts, Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import Attention

MOST_LAYERS = 4096
"""Far above any network, and low enough that a slip of the pen does not fill the memory."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What a family makes of a config: an architecture that lacks only its name and source.

    `fields` is the object that describes the language model, `norm_vectors` the numbers of the
    final norm for each hidden dimension (2 where it has a bias), `entry_vector_params` those of
    norms before the first layer. The names are MLX paths; `protected_table` marks an embedding
    that is kept in 8 bits, and `quantizes_tables` is False where embedding and head stay in 16.
    """

    fields: Fields
    layers: tuple[Layer, ...]
    tied: bool
    norm_vectors: int = 1
    head_bias: bool = False
    module_prefix: str = ""
    entry: tuple[Siblings, ...] = ()
    entry_vector_params: int = 0
    lookups: tuple[Matrix, ...] = ()
    loops: int = 1
    layers_path: str = "model.layers"
    embedding_name: str = "model.embed_tokens"
    head_name: str = "lm_head"
    protected_table: bool = False
    quantizes_tables: bool = True


def layer_count(fields: Fields) -> int:
    """How many layers the config asks for."""
    return fields.size("num_hidden_layers", most=MOST_LAYERS)


def inner_network(
    fields: Fields, family: Callable[[Fields], Network], defaults: Mapping[str, object]
) -> Network:
    """The language model in `text_config` of a vision model; `defaults` fill absent fields."""
    whole = filled(fields.child("text_config"), defaults)
    return replace(family(whole), module_prefix="language_model.")


def filled(fields: Fields, defaults: Mapping[str, object]) -> Fields:
    """The same fields with defaults for those that are absent."""
    stated = {key: value for key, value in fields.values.items() if value is not None}
    return replace(fields, values={**defaults, **stated})


def full_attention(
    fields: Fields, *, head_dim: int | None = None, multi_head: bool = False
) -> Attention:
    """Attention over every token, with the config's heads.

    Where the config states no `head_dim`, a head gets the one given here or else an equal share
    of the hidden size. With `multi_head`, absent `num_key_value_heads` stands for one key and
    value for each query head; without, they have to be stated.

    Raises:
        InputError: the heads do not divide as they must.
    """
    queries = fields.size("num_attention_heads")
    keys = fields.size("num_key_value_heads", queries if multi_head else None)
    if queries % keys:
        raise fields.refusal(
            "num_key_value_heads",
            f"does not divide the {queries} attention heads",
            "give a divisor of num_attention_heads",
        )
    hidden = fields.size("hidden_size")
    if not fields.has("head_dim") and head_dim is None and hidden % queries:
        raise fields.refusal(
            "num_attention_heads",
            f"does not divide the hidden size {hidden}",
            "give a divisor of hidden_size, or state head_dim",
        )
    return Attention(
        query_heads=queries,
        kv_heads=keys,
        head_dim=fields.size("head_dim", head_dim or hidden // queries),
    )


def attention_by_type(
    fields: Fields, full: Attention, default_types: Sequence[str]
) -> tuple[Attention, ...]:
    """The attention of each layer, after `layer_types` or else `default_types`.

    Raises:
        InputError: an unknown type, a wrong number of types, or a window that is not stated.
    """
    types = fields.items("layer_types") or tuple(default_types)
    depth = layer_count(fields)
    if len(types) != depth:
        right = f"name one type for each of the {depth} layers"
        raise fields.refusal("layer_types", f"has {len(types)} entries", right)
    kinds = {"full_attention": full}
    if "sliding_attention" in types:
        kinds["sliding_attention"] = sliding(full, fields.size("sliding_window"))
    named = [str(kind) for kind in types]
    unknown = next((kind for kind in named if kind not in kinds), None)
    if unknown is not None:
        right = "this family has full_attention and sliding_attention"
        raise fields.refusal("layer_types", f"holds {unknown!r}", right)
    return tuple(kinds[kind] for kind in named)


def sliding(full: Attention, window: int) -> Attention:
    """The same heads over the last `window` tokens."""
    return replace(full, window=window)


def projections(
    hidden: int, attention: Attention, *, bias: bool = False, out_bias: bool = False
) -> tuple[Siblings, Siblings]:
    """Query, key and value side by side, then the output projection."""
    queries = attention.query_heads * attention.head_dim
    keys = attention.kv_heads * attention.head_dim
    qkv = tuple(
        Matrix(name=f"self_attn.{name}_proj", columns=columns, depth=hidden, bias=bias)
        for name, columns in (("q", queries), ("k", keys), ("v", keys))
    )
    out = Matrix(name="self_attn.o_proj", columns=hidden, depth=queries, bias=out_bias)
    return Siblings(name="qkv", matrices=qkv), Siblings(name="out", matrices=(out,))


def gated_mlp(
    hidden: int, inner: int, *, module: str = "mlp", bias: bool = False, count: int = 1
) -> tuple[Siblings, Siblings]:
    """Gate and up side by side, then down; `module` is their MLX path, `count` their copies."""

    def matrix(name: str, columns: int, depth: int) -> Matrix:
        path = f"{module}.{name}"
        return Matrix(name=path, columns=columns, depth=depth, bias=bias, count=count)

    gate_up = (matrix("gate_proj", inner, hidden), matrix("up_proj", inner, hidden))
    down = (matrix("down_proj", hidden, inner),)
    return Siblings(name="gate_up", matrices=gate_up), Siblings(name="down", matrices=down)


def routed_experts(
    fields: Fields,
    *,
    total_key: str,
    inner_key: str,
    router: str,
    module: str,
    top_k_key: str = "num_experts_per_tok",
    bias: bool = False,
    protected: bool = False,
) -> Experts:
    """A router and its experts.

    The keys name the fields with the number of experts, their inner size and how many a token
    selects; `router` and `module` are MLX paths in the layer; mlx-lm keeps a `protected` router
    in 8 bits.

    Raises:
        InputError: a token selects more experts than there are.
    """
    hidden, total = fields.size("hidden_size"), fields.size(total_key)
    top_k = fields.size(top_k_key)
    if top_k > total:
        wrong, right = f"is more than the {total} experts", f"give at most {total_key}"
        raise fields.refusal(top_k_key, wrong, right)
    return Experts(
        router=Matrix(name=router, columns=total, depth=hidden, bias=bias, protected=protected),
        siblings=gated_mlp(hidden, fields.size(inner_key), module=module, bias=bias, count=total),
        num_experts=total,
        top_k=top_k,
    )
