"""Weight matrices by their MLX path, and the groups of them that read the same input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A weight matrix y = W x with W of shape (columns, depth).

    `name` is the MLX module path inside its layer ("self_attn.q_proj") or inside the network
    ("lm_head"). `count` copies are stacked, one per expert or per head. `protected` marks the few
    that mlx-lm's own `quant_predicate` keeps in 8 bits when it quantizes the rest: routing is
    discrete. `quantizes` is False for what MLX never quantizes (routers that are bare
    arrays, and what a network's `quant_predicate` leaves alone).
    """

    name: str
    columns: int
    depth: int
    bias: bool = False
    count: int = 1
    protected: bool = False
    quantizes: bool = True

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

    @property
    def columns(self) -> int:
        """Outputs of all of them together, every copy."""
        return sum(matrix.count * matrix.columns for matrix in self.matrices)

    @property
    def weights(self) -> int:
        """Numbers to multiply with."""
        return sum(matrix.weights for matrix in self.matrices)
