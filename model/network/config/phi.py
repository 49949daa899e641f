"""Phi 3 and 4: Llama with query, key and value in one matrix, and gate and up in another.

mlx-lm gives every layer the whole context, whatever `sliding_window` says.
"""

from __future__ import annotations

from model.network.config.blocks import Network, full_attention, gated_mlp, layer_count, projections
from model.network.config.fields import Fields
from model.network.layer import Layer
from model.network.matrix import Matrix, Siblings


def phi3(fields: Fields) -> Network:
    """Phi 3, 3.5 and 4, dense."""
    hidden, inner = fields.size("hidden_size"), fields.size("intermediate_size")
    attention = full_attention(fields, multi_head=True)
    qkv, out = projections(hidden, attention)
    gate_up, down = gated_mlp(hidden, inner)
    layer = Layer(
        mixer=attention,
        mixer_siblings=(_fused(qkv, "self_attn.qkv_proj"), out),
        mlp_siblings=(_fused(gate_up, "mlp.gate_up_proj"), down),
        vector_params=2 * hidden,
    )
    tied = fields.flag("tie_word_embeddings", False)  # transformers and mlx-lm
    return Network(fields=fields, layers=(layer,) * layer_count(fields), tied=tied)


def _fused(siblings: Siblings, name: str) -> Siblings:
    """The siblings as the single matrix that this family stores."""
    columns = sum(matrix.columns for matrix in siblings.matrices)
    matrix = Matrix(name=name, columns=columns, depth=siblings.matrices[0].depth)
    return Siblings(name=siblings.name, matrices=(matrix,))
