"""Gated delta nets between layers of gated attention: Qwen 3 Next and Qwen 3.5, dense and MoE.

Every `full_attention_interval`-th layer attends to all tokens, with queries beside a gate of the
same width; the others keep one matrix for each value head and a few inputs of a short
convolution. mlx-lm 0.32.2 reads the interval and not `layer_types`.

A depthwise convolution is no product of a matrix: its weights count as vectors, and its
multiply-accumulates belong to the mixer.
"""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import (
    Network,
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
from model.network.mixer import Recurrence


def qwen3_next(fields: Fields) -> Network:
    """Qwen 3 Next: layers are mixtures but for those that the config names, as in Qwen 3 MoE.

    Raises:
        InputError: `mlp_only_layers` holds something else than layer numbers.
    """
    step = fields.size("decoder_sparse_step", 1)  # transformers; mlx-lm insists on it
    dense_layers = fields.items("mlp_only_layers")
    if not all(isinstance(index, int) for index in dense_layers):
        right = "give the numbers of the layers without experts"
        raise fields.refusal("mlp_only_layers", "holds more than whole numbers", right)
    mixture = fields.size("num_experts", least=0) > 0
    return _network(
        fields,
        head_dim=256,  # transformers; mlx-lm insists on it
        inputs=("qkvz", "ba"),
        sparse_at=[
            mixture and index not in dense_layers and (index + 1) % step == 0
            for index in range(layer_count(fields))
        ],
    )


def qwen3_5(fields: Fields) -> Network:
    """Qwen 3.5, inside a vision model or alone; a mixture in every layer where it has experts."""
    if fields.has("text_config"):
        return inner_network(fields, _qwen3_5, {})
    return replace(_qwen3_5(fields), module_prefix="language_model.")


def _qwen3_5(fields: Fields) -> Network:
    mixture = fields.size("num_experts", 0, least=0) > 0  # mlx-lm
    return _network(
        fields,
        head_dim=None,
        inputs=("qkv", "z", "b", "a"),
        sparse_at=[mixture] * layer_count(fields),
    )


def delta_macs(*, heads: int, key_dim: int, value_dim: int) -> int:
    """Multiply-accumulates of one row with the states of a gated delta net.

    Four for each number of the state (mlx-lm 0.32.2, `gated_delta.py`, `_gated_delta_step_ops`):
    `state * decay`, the products of `state * k` that are summed, `state + k * delta`, and those of
    `state * q`.
    """
    return 4 * heads * key_dim * value_dim


def _network(
    fields: Fields, *, head_dim: int | None, inputs: tuple[str, ...], sparse_at: list[bool]
) -> Network:
    """The layers in order; `inputs` name what the delta net's input matrices hold side by side."""
    hidden = fields.size("hidden_size")
    interval = fields.size("full_attention_interval", 4)  # transformers and mlx-lm
    attention, delta = gated_attention(fields, head_dim), delta_net(fields, inputs)
    dense: tuple[Siblings, ...] = ()
    shared, experts = (), None
    if not all(sparse_at):
        dense = gated_mlp(hidden, fields.size("intermediate_size"))
    if any(sparse_at):
        shared = shared_expert(fields)
        experts = routed_experts(
            fields,
            total_key="num_experts",
            inner_key="moe_intermediate_size",
            router="mlp.gate",
            module="mlp.switch_mlp",
            protected=True,
        )
    return Network(
        fields=fields,
        layers=tuple(
            replace(
                delta if (index + 1) % interval else attention,
                mlp_siblings=shared if sparse else dense,
                experts=experts if sparse else None,
            )
            for index, sparse in enumerate(sparse_at)
        ),
        tied=fields.flag("tie_word_embeddings", False),  # transformers and mlx-lm
    )


def gated_attention(fields: Fields, head_dim: int | None) -> Layer:
    """Attention whose queries stand beside an output gate of the same width, without its MLP."""
    hidden = fields.size("hidden_size")
    attention = full_attention(fields, head_dim=head_dim)
    bias = fields.flag("attention_bias", False)  # transformers and mlx-lm
    qkv, out = projections(hidden, attention, bias=bias, out_bias=bias)
    queries, *keys_and_values = qkv.matrices
    gated = replace(queries, columns=2 * queries.columns)
    return Layer(
        mixer=attention,
        mixer_siblings=(replace(qkv, matrices=(gated, *keys_and_values)), out),
        vector_params=2 * hidden + 2 * attention.head_dim,
        head_norms=2,
    )


def delta_net(fields: Fields, inputs: tuple[str, ...]) -> Layer:
    """A gated delta net without its MLP; `inputs` name what its matrices hold side by side.

    Raises:
        InputError: the value heads are no multiple of the key heads.
    """
    hidden, kernel = fields.size("hidden_size"), fields.size("linear_conv_kernel_dim")
    key_heads = fields.size("linear_num_key_heads")
    heads = fields.size("linear_num_value_heads")
    key_dim = fields.size("linear_key_head_dim")
    value_dim = fields.size("linear_value_head_dim")
    if heads % key_heads:
        raise fields.refusal(
            "linear_num_value_heads",
            f"is not a multiple of the {key_heads} key heads",
            "give a multiple of linear_num_key_heads",
        )
    keys, values = key_heads * key_dim, heads * value_dim
    columns = {"q": keys, "k": keys, "v": values, "z": values, "b": heads, "a": heads}
    reads = tuple(
        Matrix(
            name=f"linear_attn.in_proj_{held}",
            columns=sum(columns[each] for each in held),
            depth=hidden,
        )
        for held in inputs
    )
    out = Matrix(name="linear_attn.out_proj", columns=hidden, depth=values)
    channels = 2 * keys + values
    decays = 2 * heads  # A_log and dt_bias
    return Layer(
        mixer=Recurrence(
            state_elements=heads * key_dim * value_dim,
            conv_elements=(kernel - 1) * channels,
            macs=delta_macs(heads=heads, key_dim=key_dim, value_dim=value_dim) + kernel * channels,
        ),
        mixer_siblings=(Siblings(name="in", matrices=reads), Siblings(name="out", matrices=(out,))),
        vector_params=2 * hidden + kernel * channels + decays + value_dim,
    )


def shared_expert(fields: Fields) -> tuple[Siblings, Siblings]:
    """The expert that every token passes; mlx-lm keeps its gate of one column in 8 bits."""
    hidden, inner = fields.size("hidden_size"), fields.size("shared_expert_intermediate_size")
    gate_up, down = gated_mlp(hidden, inner, module="mlp.shared_expert")
    gate = Matrix(name="mlp.shared_expert_gate", columns=1, depth=hidden, protected=True)
    return (
        Siblings(name="shared_gate_up", matrices=(*gate_up.matrices, gate)),
        Siblings(name="shared_down", matrices=down.matrices),
    )
