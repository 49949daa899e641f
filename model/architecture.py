"""What a network is made of: every weight matrix by its MLX path, and how attention remembers.

Records only; nothing here knows a file or a machine. Matrices that read the same input stand
together as :class:`Siblings`, because a machine may run them side by side, and siblings stand in
the order in which they run. Sizes are counts of numbers; bytes need a weight format and belong to
:mod:`model.checkpoint`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:  # numpy takes a quarter of a second to import; listing models needs none of it
    from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A weight matrix y = W x with W of shape (columns, depth).

    `name` is the MLX module path inside its layer ("self_attn.q_proj") or inside the network
    ("lm_head"). `count` copies are stacked, one per expert. `protected` marks the few that
    mlx-lm's own `quant_predicate` keeps in 8 bits when it quantizes the rest: routing is discrete.
    """

    name: str
    columns: int
    depth: int
    bias: bool = False
    count: int = 1
    protected: bool = False

    @property
    def weights(self) -> int:
        """Numbers to multiply with, all copies."""
        return self.count * self.columns * self.depth

    @property
    def biases(self) -> int:
        """Numbers to add, all copies."""
        return self.count * self.columns if self.bias else 0

    @property
    def params(self) -> int:
        """Weights and biases of all copies."""
        return self.weights + self.biases


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Siblings:
    """Matrices that read the same input and so can run side by side."""

    name: str
    matrices: tuple[Matrix, ...]


class AttentionKind(Enum):
    """What attention keeps of the past."""

    FULL = "full"
    """Every token."""
    SLIDING = "sliding"
    """The last `window` tokens."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Grouped-query attention: query heads share fewer key and value heads."""

    kind: AttentionKind
    query_heads: int
    kv_heads: int
    head_dim: int
    window: int | None = None

    def kv_bytes_per_token(self, element_bytes: float = 2) -> float:
        """Bytes that one token adds to the cache: a key and a value for each KV head."""
        return 2 * self.kv_heads * self.head_dim * element_bytes

    def cached_tokens(self, context: Quantity) -> Quantity:
        """Tokens that a row at this context looks at; arrays broadcast.

        The rows of one verify pass see up to `rows` tokens more than the window; that is left out.
        """
        if self.window is None:
            return context
        if isinstance(context, int | float):
            return min(context, self.window)
        import numpy as np

        return np.minimum(context, self.window)

    def macs_per_row(self, context: Quantity) -> Quantity:
        """Multiply-accumulates of one row: a score and a weighted value for each query head."""
        return 2 * self.query_heads * self.head_dim * self.cached_tokens(context)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture: the router picks `top_k` of `num_experts` copies of `siblings` for each row."""

    router: Matrix
    siblings: tuple[Siblings, ...]
    num_experts: int
    top_k: int

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """The stacked matrices of all experts, without the router."""
        return tuple(matrix for siblings in self.siblings for matrix in siblings.matrices)

    @property
    def unselected_params(self) -> int:
        """What one row leaves unread."""
        one_expert = sum(matrix.params for matrix in self.matrices) // self.num_experts
        return one_expert * (self.num_experts - self.top_k)

    @property
    def active_weights(self) -> int:
        """Numbers that one row multiplies with."""
        one_expert = sum(matrix.weights for matrix in self.matrices) // self.num_experts
        return self.router.weights + one_expert * self.top_k


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One block: attention, its dense siblings in order of execution, and experts after them.

    `vector_params` counts the numbers outside matrices (norms, attention sinks), which stay in
    the activation dtype. A shared expert is dense, so it stands among the siblings.
    """

    attention: Attention
    siblings: tuple[Siblings, ...]
    experts: Experts | None = None
    vector_params: int

    @property
    def dense_matrices(self) -> tuple[Matrix, ...]:
        """The matrices that every row reads, without the router."""
        return tuple(matrix for siblings in self.siblings for matrix in siblings.matrices)

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Every matrix of the layer, router and experts last."""
        if self.experts is None:
            return self.dense_matrices
        return (*self.dense_matrices, self.experts.router, *self.experts.matrices)

    @property
    def params(self) -> int:
        """Everything stored."""
        return self.vector_params + sum(matrix.params for matrix in self.matrices)

    @property
    def unselected_params(self) -> int:
        """Experts that one row leaves unread."""
        return self.experts.unselected_params if self.experts is not None else 0

    @property
    def active_weights(self) -> int:
        """Numbers that one row multiplies with."""
        routed = self.experts.active_weights if self.experts is not None else 0
        return routed + sum(matrix.weights for matrix in self.dense_matrices)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A whole language model, independent of the format of its weights.

    `head` is the matrix read for the logits: the embedding table itself when `tied`.
    `module_prefix` is what MLX puts before "model.layers..." ("language_model." inside a vision
    model). `context_limit` is None where the config does not state it.
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

    def __hash__(self) -> int:
        """A cheap hash, so that caches may be keyed by a network of 126 layers."""
        return hash((self.name, self.source, self.hidden_size, len(self.layers)))

    @property
    def embedding(self) -> Matrix:
        """The input table, of which a token reads one row."""
        return Matrix(name="model.embed_tokens", columns=self.vocab_size, depth=self.hidden_size)

    @property
    def layer_kinds(self) -> tuple[tuple[Layer, int], ...]:
        """The distinct layers and how often each occurs, so that equal ones are priced once."""
        return _layer_kinds(self)

    @property
    def params(self) -> int:
        """Unique parameters: a tied table counts once."""
        tables = self.embedding.params + (0 if self.tied else self.head.params)
        layers = sum(count * layer.params for layer, count in self.layer_kinds)
        return tables + layers + self.final_vector_params

    @property
    def active_params(self) -> int:
        """Parameters without the experts that a token does not select.

        The usual count behind names such as 30B-A3B; it still holds the whole input table.
        """
        return self.params - sum(n * layer.unselected_params for layer, n in self.layer_kinds)

    def kv_bytes_per_token(self, element_bytes: float = 2) -> float:
        """Bytes that a token adds to the cache of all layers while every window has room."""
        return sum(
            count * layer.attention.kv_bytes_per_token(element_bytes)
            for layer, count in self.layer_kinds
        )

    def kv_bytes(self, context: Quantity, element_bytes: float = 2) -> Quantity:
        """Bytes of the cache at a context, which one row reads once; arrays broadcast."""
        return sum(
            count
            * layer.attention.kv_bytes_per_token(element_bytes)
            * layer.attention.cached_tokens(context)
            for layer, count in self.layer_kinds
        )

    def flops_per_row(self, context: Quantity = 0) -> Quantity:
        """Floating-point operations of one row through all layers and the head.

        Two per multiply-accumulate: F = 2 (active weights + attention). Norms, activations and
        the softmax are left out: a few operations for each number of a row, against thousands.
        """
        macs = self.head.weights + sum(
            count * (layer.active_weights + layer.attention.macs_per_row(context))
            for layer, count in self.layer_kinds
        )
        return 2 * macs

    def layer_path(self, index: int, matrix: Matrix) -> str:
        """The full MLX path of a matrix of layer `index`."""
        return f"{self.module_prefix}model.layers.{index}.{matrix.name}"

    def outer_path(self, matrix: Matrix) -> str:
        """The full MLX path of the head or the embedding."""
        return self.module_prefix + matrix.name


@lru_cache(maxsize=256)
def _layer_kinds(architecture: Architecture) -> tuple[tuple[Layer, int], ...]:
    return tuple(Counter(architecture.layers).items())
