"""Nemotron-H: Mamba 2, attention, experts and plain MLPs, one to a layer, in any order.

The order is a string of `M`, `*`, `E` and `-`, or a list of words; its length is the number of
layers (mlx-lm). An MLP has no gate: up, squared ReLU, down. The correction of the expert scores is
counted as the bias of the router, a bare array that MLX does not quantize.
"""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import (
    MOST_LAYERS,
    Network,
    full_attention,
    projections,
    routed_experts,
)
from model.network.config.fields import Fields
from model.network.config.latent import bare_router
from model.network.layer import Experts, Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import Recurrence

BLOCK_TYPES = {
    "full_attention": "*",
    "linear_attention": "M",
    "moe": "E",
    "mlp": "-",
    "attention": "*",
    "mamba": "M",
    "conv": "M",
}
"""The words of transformers, old and new, for the characters of the pattern (mlx-lm)."""


def nemotron_h(fields: Fields) -> Network:
    """Nemotron-H and Nemotron 3; the head is never tied (mlx-lm)."""
    makers = {"M": _mamba, "*": _attention, "E": _mixture, "-": _mlp}
    pattern = block_pattern(fields)
    layers = {kind: makers[kind](fields) for kind in dict.fromkeys(pattern)}
    return Network(
        fields=fields,
        layers=tuple(layers[kind] for kind in pattern),
        tied=False,
        layers_path="backbone.layers",
        embedding_name="backbone.embeddings",
    )


def block_pattern(fields: Fields) -> str:
    """The kind of each layer as one character.

    Raises:
        InputError: no order is stated, or it holds something else.
    """
    key = "hybrid_override_pattern"
    stated = fields.values.get(key)
    words: tuple[object, ...] = tuple(stated) if isinstance(stated, str) else fields.items(key)
    if not fields.has(key):
        key = "layers_block_type" if fields.has("layers_block_type") else "layer_types"
        words = tuple(BLOCK_TYPES.get(str(word), word) for word in fields.items(key))
    if not 1 <= len(words) <= MOST_LAYERS:
        right = f"name 1 to {MOST_LAYERS} layers, as hybrid_override_pattern or layers_block_type"
        raise fields.refusal(key, f"names {len(words)} layers", right)
    unknown = next((word for word in words if word not in ("M", "*", "E", "-")), None)
    if unknown is not None:
        right = "mlx-lm knows M, *, E and -, or the words mamba, attention, moe and mlp"
        raise fields.refusal(key, f"holds {unknown!r}", right)
    return "".join(str(word) for word in words)


def _mamba(fields: Fields) -> Layer:
    """Mamba 2: a state for each head, and the last inputs of a short convolution.

    Three multiply-accumulates for each number of the state (mlx-lm 0.32.2, `ssm.py`, the kernel of
    one row): `x dt * B`, `dA * state + ...`, and the products of `state * C`.
    """
    hidden, kernel = fields.size("hidden_size"), fields.size("conv_kernel")
    heads, head_dim = fields.size("mamba_num_heads"), fields.size("mamba_head_dim")
    groups, state = fields.size("n_groups"), fields.size("ssm_state_size")
    if heads % groups:
        right = "give a divisor of mamba_num_heads"
        raise fields.refusal("n_groups", f"does not divide the {heads} heads", right)
    bias = fields.flag("mamba_proj_bias")
    inner = heads * head_dim
    channels = inner + 2 * groups * state
    into = Matrix(name="mixer.in_proj", columns=inner + channels + heads, depth=hidden, bias=bias)
    out = Matrix(name="mixer.out_proj", columns=hidden, depth=inner, bias=bias)
    convolution = (kernel + fields.flag("use_conv_bias")) * channels
    rates = 3 * heads  # A_log, dt_bias and D
    return Layer(
        mixer=Recurrence(
            state_elements=inner * state,
            conv_elements=(kernel - 1) * channels,
            macs=3 * inner * state + kernel * channels,
        ),
        mixer_siblings=(
            Siblings(name="in", matrices=(into,)),
            Siblings(name="out", matrices=(out,)),
        ),
        vector_params=hidden + convolution + rates + inner,
    )


def _attention(fields: Fields) -> Layer:
    hidden = fields.size("hidden_size")
    attention = full_attention(fields)
    bias = fields.flag("attention_bias")
    siblings = tuple(
        replace(
            each,
            matrices=tuple(
                replace(matrix, name=matrix.name.replace("self_attn", "mixer"))
                for matrix in each.matrices
            ),
        )
        for each in projections(hidden, attention, bias=bias, out_bias=bias)
    )
    return Layer(mixer=attention, mixer_siblings=siblings, vector_params=hidden)


def _mlp(fields: Fields) -> Layer:
    hidden = fields.size("hidden_size")
    up, down = _up_down(fields, "mixer", fields.size("intermediate_size"))
    return Layer(mlp_siblings=(up, down), vector_params=hidden)


def _mixture(fields: Fields) -> Layer:
    """Routed experts beside one shared MLP; some releases route in a smaller latent space."""
    hidden, latent = fields.size("hidden_size"), fields.optional_size("moe_latent_size")
    dense: tuple[Siblings, ...] = ()
    if fields.has("n_shared_experts"):
        key = "moe_shared_expert_intermediate_size"
        inner = fields.size(key if fields.has(key) else "intermediate_size")
        up, down = _up_down(fields, "mixer.shared_experts", inner)
        dense = (replace(up, name="shared_up"), replace(down, name="shared_down"))
    if latent is not None:
        bias = fields.flag("mlp_bias")
        into = Matrix(name="mixer.fc1_latent_proj", columns=latent, depth=hidden, bias=bias)
        out = Matrix(name="mixer.fc2_latent_proj", columns=hidden, depth=latent, bias=bias)
        dense = (
            *dense,
            Siblings(name="latent_in", matrices=(into,)),
            Siblings(name="latent_out", matrices=(out,)),
        )
    return Layer(
        mlp_siblings=dense,
        experts=_experts(fields, latent or hidden),
        vector_params=hidden,
    )


def _experts(fields: Fields, width: int) -> Experts:
    experts = routed_experts(
        fields,
        total_key="n_routed_experts",
        inner_key="moe_intermediate_size",
        router="mixer.gate",
        module="mixer.switch_mlp",
    )
    inner, count = fields.size("moe_intermediate_size"), experts.num_experts
    up = Matrix(name="mixer.switch_mlp.fc1", columns=inner, depth=width, count=count)
    down = Matrix(name="mixer.switch_mlp.fc2", columns=width, depth=inner, count=count)
    siblings = (Siblings(name="up", matrices=(up,)), Siblings(name="down", matrices=(down,)))
    return replace(bare_router(experts, corrected=True), siblings=siblings)


def _up_down(fields: Fields, module: str, inner: int) -> tuple[Siblings, Siblings]:
    hidden, bias = fields.size("hidden_size"), fields.flag("mlp_bias")
    up = Matrix(name=f"{module}.up_proj", columns=inner, depth=hidden, bias=bias)
    down = Matrix(name=f"{module}.down_proj", columns=hidden, depth=inner, bias=bias)
    return Siblings(name="up", matrices=(up,)), Siblings(name="down", matrices=(down,))
