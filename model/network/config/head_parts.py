"""The pieces that draft heads share: their frame, and the states they take in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from model.network.architecture import Architecture
from model.network.config.fields import Fields
from model.network.layer import Layer
from model.network.matrix import Matrix, Siblings


def head_architecture(
    fields: Fields,
    name: str,
    layers: Sequence[Layer],
    *,
    entry: Sequence[Siblings],
    norms: int,
    head: Matrix | None = None,
    tied: bool = False,
    owns_embedding: bool = False,
    lookups: Sequence[Matrix] = (),
) -> Architecture:
    """The architecture of a head; `norms` are vectors of the hidden size outside its layers.

    Without `head` the target's is read for the logits. A head has no context limit of its own:
    rotary embeddings go on, and what suffers beyond the lengths of its training is acceptance.
    """
    hidden, vocabulary = fields.size("hidden_size"), fields.size("vocab_size")
    return Architecture(
        name=name,
        model_type=fields.text("model_type"),
        hidden_size=hidden,
        vocab_size=vocabulary,
        layers=tuple(layers),
        head=head or Matrix(name="lm_head", columns=vocabulary, depth=hidden),
        tied=tied,
        final_vector_params=norms * hidden,
        context_limit=None,
        source=fields.where,
        entry=tuple(entry),
        lookups=tuple(lookups),
        borrows_embedding=not owns_embedding,
        borrows_head=head is None,
    )


def one_matrix(name: str, *, columns: int, depth: int, bias: bool = False) -> Siblings:
    """A matrix that nothing runs beside."""
    matrix = Matrix(name=name, columns=columns, depth=depth, bias=bias)
    return Siblings(name=name.rpartition(".")[2], matrices=(matrix,))


def with_gate(qkv: Siblings) -> Siblings:
    """Queries beside an output gate of the same width, in one matrix."""
    queries, *others = qkv.matrices
    return replace(qkv, matrices=(replace(queries, columns=2 * queries.columns), *others))


def with_depth(siblings: Siblings, depth: int) -> Siblings:
    """The same outputs from wider inputs."""
    return replace(
        siblings, matrices=tuple(replace(matrix, depth=depth) for matrix in siblings.matrices)
    )


def target_name(fields: Fields) -> str | None:
    """The model a head was trained for, where it is written down (`_target`)."""
    return fields.text("_target") if fields.has("_target") else None
