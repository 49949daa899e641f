r"""How many experts a pass has to read, and when MLX serves them in groups.

With independent routing, M rows that pick k of E experts each touch

.. math:: U(M) = E \bigl(1 - (1 - k / E)^M\bigr)

different ones. Neighbouring tokens share more than chance (25.7 % of their experts against 6.25 %
in mlx-lm PR 1485). Where that share s was measured, rows choose as if from a pool of k / s:

.. math:: U(M) = \tfrac{k}{s} \bigl(1 - (1 - s)^M\bigr)

which is the first law at s = k / E, k at s = 1, and exact for two rows. A pool describes one
text; over hundreds of rows the topic drifts and more experts are met.

Arithmetic is one product per (row, expert) pair whatever the overlap, because MLX's gathered
matrix-vector kernel serves each pair on its own. Only from a number of pairs per expert on does
it sort the pairs and work on tiles of rows (:class:`model.machine.machine.Grouping`).
"""

from __future__ import annotations

from model.errors import InputError
from model.network.layer import Experts
from model.units import Quantity


def unique_experts(experts: Experts, rows: Quantity) -> Quantity:
    """Expected number of different experts that `rows` rows route to; arrays broadcast.

    Raises:
        InputError: a share of common experts that the routing cannot have.
    """
    chance = experts.top_k / experts.num_experts
    share = chance if experts.shared_choice is None else experts.shared_choice
    if not chance <= share <= 1.0:
        raise InputError(
            f"shared experts {share:g}",
            f"is not possible for {experts.top_k} of {experts.num_experts} experts",
            f"give a share from {chance:.3g} (chance) to 1",
        )
    return experts.top_k / share * (1.0 - (1.0 - share) ** rows)
