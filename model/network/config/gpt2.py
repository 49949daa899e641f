"""GPT-2: positions are a table, biases are everywhere, and its config has words of its own."""

from __future__ import annotations

from model.network.config.blocks import MOST_LAYERS, Network, filled, full_attention
from model.network.config.fields import Fields
from model.network.layer import Layer
from model.network.matrix import Matrix, Siblings


def gpt2(fields: Fields) -> Network:
    """GPT-2, always tied; its MLP is four times as wide as its hidden size (mlx-lm).

    Raises:
        InputError: the heads do not divide the width.
    """
    hidden, heads = fields.size("n_embd"), fields.size("n_head")
    if hidden % heads:
        wrong = f"does not divide the width of {hidden}"
        raise fields.refusal("n_head", wrong, "give a divisor of n_embd")
    positions = fields.size("n_positions")
    common = {"hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": heads}
    renamed = filled(fields, {**common, "max_position_embeddings": positions})
    layer = Layer(
        mixer=full_attention(renamed),
        mixer_siblings=(
            _biased("qkv", "attn.c_attn", 3 * hidden, hidden),
            _biased("out", "attn.c_proj", hidden, hidden),
        ),
        mlp_siblings=(
            _biased("up", "mlp.c_fc", 4 * hidden, hidden),
            _biased("down", "mlp.c_proj", hidden, 4 * hidden),
        ),
        vector_params=2 * 2 * hidden,
    )
    return Network(
        fields=renamed,
        layers=(layer,) * fields.size("n_layer", most=MOST_LAYERS),
        tied=True,
        norm_vectors=2,
        lookups=(Matrix(name="model.wpe", columns=positions, depth=hidden),),
        layers_path="model.h",
        embedding_name="model.wte",
    )


def _biased(group: str, name: str, columns: int, depth: int) -> Siblings:
    matrix = Matrix(name=name, columns=columns, depth=depth, bias=True)
    return Siblings(name=group, matrices=(matrix,))
