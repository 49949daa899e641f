"""A layer of a network: a mixer with its matrices, then an MLP, whose experts come last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from model.network.matrix import Matrix, Siblings
from model.network.mixer import AbstractMixer, LatentAttention

if TYPE_CHECKING:  # numpy takes a quarter of a second to import; listing models needs none of it
    from model.units import Quantity


ROUTER_KERNELS = 5
"""Of the usual router: softmax, partition, gather, sum and division (mlx-lm, `qwen3_moe.py`)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture: the router picks `top_k` of `num_experts` copies of `siblings` for each row.

    `shared_choice` is the share of its experts that a row has in common with another row of the
    same pass, where it was measured; None is chance (:mod:`model.cost.moe`). `router_kernels` are
    the small kernels between the router's product and the choice.
    """

    router: Matrix
    siblings: tuple[Siblings, ...]
    num_experts: int
    top_k: int
    shared_choice: float | None = None
    router_kernels: int = ROUTER_KERNELS

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
    """One block: a mixer with its matrices, then an MLP, whose experts come last.

    Either half may be absent: some networks stack them one by one, and a draft that skips
    sublayers lacks some. `vector_params` counts the numbers outside matrices (norms, attention
    sinks, decay rates), which stay in the activation dtype, and `table_params` those of tables
    of which a token takes a few (biases by position, experts by token). `head_norms` are the
    norms of queries and keys that are as wide as one head, each one operation. A shared expert
    is dense, so it stands among the siblings of the MLP.
    """

    mixer: AbstractMixer | None = None
    mixer_siblings: tuple[Siblings, ...] = ()
    mlp_siblings: tuple[Siblings, ...] = ()
    experts: Experts | None = None
    vector_params: int
    table_params: int = 0
    head_norms: int = 0

    @property
    def has_mlp(self) -> bool:
        """Whether anything follows the mixer."""
        return bool(self.mlp_siblings) or self.experts is not None

    @property
    def blocks(self) -> float:
        """How much of an ordinary block this is: half for each of mixer and MLP."""
        return 0.5 * (self.mixer is not None) + 0.5 * self.has_mlp

    @property
    def siblings(self) -> tuple[Siblings, ...]:
        """The dense matrices in order of execution, those that unfold a latent cache apart."""
        return (*self.mixer_siblings, *self.mlp_siblings)

    @property
    def unfolding(self) -> Siblings | None:
        """The matrices that unfold a latent cache, multiplied with rows or with the cache."""
        return self.mixer.unfolding if isinstance(self.mixer, LatentAttention) else None

    @property
    def dense_matrices(self) -> tuple[Matrix, ...]:
        """The matrices that every row reads, without the router."""
        unfolding = () if self.unfolding is None else self.unfolding.matrices
        inline = tuple(matrix for siblings in self.siblings for matrix in siblings.matrices)
        return (*inline, *unfolding)

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Every matrix of the layer, router and experts last."""
        if self.experts is None:
            return self.dense_matrices
        return (*self.dense_matrices, self.experts.router, *self.experts.matrices)

    @property
    def params(self) -> int:
        """Everything stored."""
        outside = self.vector_params + self.table_params
        return outside + sum(matrix.params for matrix in self.matrices)

    @property
    def unselected_params(self) -> int:
        """Experts that one row leaves unread."""
        return self.experts.unselected_params if self.experts is not None else 0

    @property
    def active_weights(self) -> int:
        """Numbers that one row multiplies with."""
        routed = self.experts.active_weights if self.experts is not None else 0
        return routed + sum(matrix.weights for matrix in self.dense_matrices)

    def macs_per_row(self, context: Quantity) -> Quantity:
        """Multiply-accumulates of one row with its past."""
        return 0 if self.mixer is None else self.mixer.macs_per_row(context)
