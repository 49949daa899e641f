"""What a network is made of: every weight matrix by its MLX path, layer by layer.

Records only; nothing here knows a file or a machine. Matrices that read the same input stand
together as :class:`~model.network.matrix.Siblings`, because a machine may run them side by side,
and siblings stand in the order in which they run. Sizes are counts of numbers; bytes need a
weight format and belong to :mod:`model.network.checkpoint`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, final

from model.network.layer import Layer
from model.network.matrix import Matrix, Siblings
from model.network.mixer import MixerKind

if TYPE_CHECKING:  # numpy takes a quarter of a second to import; listing models needs none of it
    from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A whole language model, or a draft head, independent of the format of its weights.

    `head` is the matrix read for the logits: the embedding table itself when `tied`. `entry` are
    products before the first layer (a draft head's fusion of hidden states), `lookups` further
    tables of which a token gathers one row. A draft head may borrow its target's embedding or
    head, which then are read but not stored twice. `loops` is how often a pass runs the stack of
    layers, each time with caches of its own. `layers_path` and `embedding_name` are MLX paths,
    and `module_prefix` is what stands before them ("language_model." inside a vision model).
    `protected_table` and `quantizes_tables` say of the embedding what
    :class:`~model.network.matrix.Matrix` says of a matrix. `context_limit` is None where the
    config does not state it.
    """

    name: str
    model_type: str
    hidden_size: int
    vocab_size: int
    layers: tuple[Layer, ...]
    head: Matrix
    tied: bool
    final_vector_params: int
    context_limit: int | None
    source: str
    module_prefix: str = ""
    entry: tuple[Siblings, ...] = ()
    lookups: tuple[Matrix, ...] = ()
    borrows_embedding: bool = False
    borrows_head: bool = False
    loops: int = 1
    layers_path: str = "model.layers"
    embedding_name: str = "model.embed_tokens"
    protected_table: bool = False
    quantizes_tables: bool = True

    def __hash__(self) -> int:
        """A cheap hash, so that caches may be keyed by a network of 126 layers."""
        return hash((self.name, self.source, self.hidden_size, len(self.layers)))

    @property
    def embedding(self) -> Matrix:
        """The input table, of which a token reads one row."""
        return Matrix(
            name=self.embedding_name,
            columns=self.vocab_size,
            depth=self.hidden_size,
            protected=self.protected_table,
            quantizes=self.quantizes_tables,
        )

    @property
    def owned_tables(self) -> tuple[Matrix, ...]:
        """Every table outside the layers that is stored: a tied one once, a borrowed one never."""
        embedding = () if self.borrows_embedding else (self.embedding,)
        head = () if self.tied or self.borrows_head else (self.head,)
        return (*embedding, *head, *self.lookups)

    @property
    def entry_matrices(self) -> tuple[Matrix, ...]:
        """The matrices before the first layer."""
        return tuple(matrix for siblings in self.entry for matrix in siblings.matrices)

    @property
    def layer_kinds(self) -> tuple[tuple[Layer, int], ...]:
        """The distinct layers and how often each occurs, so that equal ones are priced once."""
        return _layer_kinds(self)

    @property
    def blocks(self) -> float:
        """Blocks of mixer and MLP that a pass runs."""
        return self.loops * sum(count * layer.blocks for layer, count in self.layer_kinds)

    @property
    def can_rewind(self) -> bool:
        """Whether rejected tokens can be taken back: a recurrent state forgets nothing."""
        return all(
            layer.mixer is None or layer.mixer.kind is not MixerKind.RECURRENT
            for layer, _ in self.layer_kinds
        )

    @property
    def params(self) -> int:
        """Unique parameters: a tied table counts once."""
        outside = sum(matrix.params for matrix in (*self.owned_tables, *self.entry_matrices))
        layers = sum(count * layer.params for layer, count in self.layer_kinds)
        return outside + layers + self.final_vector_params

    @property
    def active_params(self) -> int:
        """Parameters without the experts that a token does not select.

        The usual count behind names such as 30B-A3B; it still holds the whole input table.
        """
        return self.params - sum(n * layer.unselected_params for layer, n in self.layer_kinds)

    def kv_bytes_per_token(self, element_bytes: float = 2) -> float:
        """Bytes that attention needs of a token in all layers while every window has room.

        mlx-lm may keep more (:class:`~model.network.mixer.LatentAttention`); `kv_bytes` counts
        that.
        """
        return self.loops * sum(
            count * layer.mixer.kv_elements_per_token() * element_bytes
            for layer, count in self.layer_kinds
            if layer.mixer is not None
        )

    def kv_bytes(self, context: Quantity, element_bytes: float = 2) -> Quantity:
        """Bytes of caches and states at a context; arrays broadcast."""
        return self.loops * sum(
            count * layer.mixer.kept_bytes(context, element_bytes)
            for layer, count in self.layer_kinds
            if layer.mixer is not None
        )

    def state_bytes(self, element_bytes: float = 2) -> float:
        """Bytes of the states that no context makes larger, in all layers."""
        return self.loops * sum(
            count * layer.mixer.state_bytes(element_bytes)
            for layer, count in self.layer_kinds
            if layer.mixer is not None
        )

    def flops_per_row(self, context: Quantity = 0) -> Quantity:
        """Floating-point operations of one row through all layers and the head.

        Two per multiply-accumulate: F = 2 (active weights + attention). Norms, activations and
        the softmax are left out: a few operations for each number of a row, against thousands.
        """
        outside = self.head.weights + sum(matrix.weights for matrix in self.entry_matrices)
        macs = outside + self.loops * sum(
            count * (layer.active_weights + layer.macs_per_row(context))
            for layer, count in self.layer_kinds
        )
        return 2 * macs

    def with_shared_choice(self, share: float) -> Architecture:
        """The same network whose rows have this share of their experts in common."""
        return replace(
            self,
            layers=tuple(
                layer
                if layer.experts is None
                else replace(layer, experts=replace(layer.experts, shared_choice=share))
                for layer in self.layers
            ),
        )

    def layer_path(self, index: int, matrix: Matrix) -> str:
        """The full MLX path of a matrix of layer `index`."""
        return f"{self.module_prefix}{self.layers_path}.{index}.{matrix.name}"

    def outer_path(self, matrix: Matrix) -> str:
        """The full MLX path of the head, the embedding or a matrix before the layers."""
        return self.module_prefix + matrix.name


@lru_cache(maxsize=256)
def _layer_kinds(architecture: Architecture) -> tuple[tuple[Layer, int], ...]:
    return tuple(Counter(architecture.layers).items())
