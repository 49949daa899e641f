"""LFM 2: gated short convolutions between layers of attention, dense and as a mixture.

A layer of convolution remembers the last inputs of its kernel and nothing else, so all that grows
with the context is in a few layers. The table is always tied (mlx-lm).
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
from model.network.layer import Experts, Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import Recurrence

LAYER_TYPES = ("conv", "full_attention")


def lfm2(fields: Fields) -> Network:
    """LFM 2 and 2.5, dense."""
    gate_up, down = gated_mlp(fields.size("hidden_size"), _adjusted_inner(fields))
    names = {"mlp.gate_proj": "w1", "mlp.up_proj": "w3", "mlp.down_proj": "w2"}
    mlp = tuple(
        replace(
            siblings,
            matrices=tuple(
                replace(matrix, name=f"feed_forward.{names[matrix.name]}")
                for matrix in siblings.matrices
            ),
        )
        for siblings in (gate_up, down)
    )
    layers = tuple(replace(mixing, mlp_siblings=mlp) for mixing in _mixing_layers(fields))
    return Network(fields=fields, layers=layers, tied=True)


def lfm2_moe(fields: Fields) -> Network:
    """LFM 2 MoE: a few dense layers, then mixtures whose router is kept in 8 bits.

    The correction of the expert scores is counted like a norm; mlx-lm does not cast it, so a
    release that stores it in 32 bits holds 2 bytes more for each expert.
    """
    hidden, dense_layers = fields.size("hidden_size"), fields.size("num_dense_layers", least=0)
    corrected = fields.flag("use_expert_bias")
    mixing = _mixing_layers(fields)
    dense: tuple[Siblings, ...] = ()
    experts: Experts | None = None
    if dense_layers:
        dense = gated_mlp(hidden, fields.size("intermediate_size"), module="feed_forward")
    if dense_layers < len(mixing):
        experts = routed_experts(
            fields,
            total_key="num_experts",
            inner_key="moe_intermediate_size",
            router="feed_forward.gate",
            module="feed_forward.switch_mlp",
            protected=True,
        )
    corrections = experts.num_experts if experts is not None and corrected else 0
    return Network(
        fields=fields,
        layers=tuple(
            replace(layer, mlp_siblings=dense)
            if index < dense_layers
            else replace(layer, experts=experts, vector_params=layer.vector_params + corrections)
            for index, layer in enumerate(mixing)
        ),
        tied=True,
    )


def _mixing_layers(fields: Fields) -> tuple[Layer, ...]:
    """Every layer without its MLP."""
    attention, convolution = _attention(fields), _convolution(fields)
    attends = _attending_layers(fields)
    return tuple(
        attention if index in attends else convolution for index in range(layer_count(fields))
    )


def _attending_layers(fields: Fields) -> frozenset[int]:
    """The numbers of the layers with attention, from `full_attn_idxs` or else `layer_types`.

    Raises:
        InputError: neither is stated, or one does not fit the layers.
    """
    depth = layer_count(fields)
    numbers = fields.items("full_attn_idxs")
    if numbers:
        stated = frozenset(index for index in numbers if isinstance(index, int))
        if len(stated) != len(numbers) or not stated <= set(range(depth)):
            right = f"give layer numbers from 0 to {depth - 1}"
            raise fields.refusal("full_attn_idxs", "holds what is no layer's number", right)
        return stated
    types = fields.items("layer_types")
    if len(types) != depth:
        right = f"name one type for each of the {depth} layers"
        raise fields.refusal("layer_types", f"has {len(types)} entries", right)
    unknown = next((kind for kind in types if kind not in LAYER_TYPES), None)
    if unknown is not None:
        right = f"this family has {' and '.join(LAYER_TYPES)}"
        raise fields.refusal("layer_types", f"holds {unknown!r}", right)
    return frozenset(index for index, kind in enumerate(types) if kind == "full_attention")


def _attention(fields: Fields) -> Layer:
    hidden = fields.size("hidden_size")
    # mlx-lm gives each head its share of the hidden size, whatever `head_dim` says.
    shares = replace(fields, values={**fields.values, "head_dim": None})
    attention = full_attention(shares, multi_head=True)
    qkv, out = projections(hidden, attention)
    renamed = tuple(replace(matrix, name="self_attn.out_proj") for matrix in out.matrices)
    return Layer(
        mixer=attention,
        mixer_siblings=(qkv, replace(out, matrices=renamed)),
        vector_params=2 * hidden + 2 * attention.head_dim,
        head_norms=2,
    )


def _convolution(fields: Fields) -> Layer:
    """A short convolution between two gates, which are its multiplications beside the kernel."""
    hidden, kernel = fields.size("hidden_size"), fields.size("conv_L_cache")
    bias = fields.flag("conv_bias")
    into = Matrix(name="conv.in_proj", columns=3 * hidden, depth=hidden, bias=bias)
    out = Matrix(name="conv.out_proj", columns=hidden, depth=hidden, bias=bias)
    return Layer(
        mixer=Recurrence(
            state_elements=0,
            conv_elements=(kernel - 1) * hidden,
            macs=(kernel + 2) * hidden,
        ),
        mixer_siblings=(
            Siblings(name="in", matrices=(into,)),
            Siblings(name="out", matrices=(out,)),
        ),
        vector_params=2 * hidden + (kernel + bias) * hidden,
    )


def _adjusted_inner(fields: Fields) -> int:
    """The inner size of the MLP: two thirds of the stated one, rounded up, where asked for."""
    key = "block_ff_dim" if fields.has("block_ff_dim") else "intermediate_size"
    inner = fields.size(key)
    if not fields.flag("block_auto_adjust_ff_dim"):
        return inner
    multiple = fields.size("block_multiple_of")
    scaled = int(_multiplier(fields) * int(2 * inner / 3))
    return multiple * -(-scaled // multiple)


def _multiplier(fields: Fields) -> float:
    """The factor of the inner size; 1 where it is null (mlx-lm).

    Raises:
        InputError: it is no number, or none that leaves an MLP.
    """
    key = "block_ffn_dim_multiplier"
    value = fields.values.get(key)
    if value is None:
        return 1.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.01 <= value <= 100:
        raise fields.refusal(key, "is no factor of a size", "give a number from 0.01 to 100")
    return value
