r"""How many experts a pass has to read.

With independent routing, M rows that pick k of E experts each touch

.. math:: U(M) = E \bigl(1 - (1 - k / E)^M\bigr)

different ones. Neighbouring tokens share experts more often than chance, so this is an upper
bound on bytes; arithmetic is one product per (row, expert) pair whatever the overlap, because
MLX's gathered matrix-vector kernel serves each pair on its own until 4 pairs meet in an expert
(mlx 0.32, `GatherQMM::eval_gpu`).
"""

from __future__ import annotations

from model.units import Quantity


def unique_experts(*, num_experts: int, top_k: int, rows: Quantity) -> Quantity:
    """Expected number of different experts that `rows` rows route to.

    >>> float(unique_experts(num_experts=256, top_k=8, rows=1))
    8.0
    >>> round(float(unique_experts(num_experts=256, top_k=8, rows=32)))
    163
    """
    return num_experts * (1.0 - (1.0 - top_k / num_experts) ** rows)
