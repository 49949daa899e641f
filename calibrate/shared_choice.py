"""The share of common experts that a count of different ones stands for.

A run of a mixture is predicted from the experts that its passes read, as it is from its acceptance:
both are facts of the weights. The masks of a block of 32 show why: where all rows are masks they
read 32 of 256 experts, where none is left 96, and 163 by chance (LLaDA2-mini of random weights,
mlx-vlm 0.7.10).
"""

from __future__ import annotations

from dataclasses import replace

from scipy.optimize import brentq

from calibrate.run_record import Run
from model.cost.moe import distinct_by_chance, unique_experts
from model.network.checkpoint import Checkpoint
from model.network.layer import Experts


def as_chosen(target: Checkpoint, run: Run) -> Checkpoint:
    """The target whose rows have as many experts in common as the run counted, if it did."""
    mixtures = (layer.experts for layer in target.architecture.layers if layer.experts)
    mixture = next(mixtures, None) if run.distinct_experts else None
    if mixture is None:
        return target
    share = share_of(mixture, run.distinct_experts, run.settings.rows)
    return replace(target, architecture=target.architecture.with_shared_choice(share))


def share_of(experts: Experts, distinct: float, rows: int) -> float:
    """The share of common experts with which so many rows read `distinct` different ones.

    From chance, where they are as many as chance gives or more, to 1, where all rows have the
    same.

    >>> from model.network.matrix import Matrix
    >>> router = Matrix(name="router", columns=64, depth=64)
    >>> experts = Experts(router=router, siblings=(), num_experts=64, top_k=8)
    >>> share_of(experts, distinct=14.0, rows=2)
    0.25
    """
    chance = experts.top_k / experts.num_experts
    if distinct >= distinct_by_chance(experts.num_experts, experts.top_k, rows):
        return chance
    if distinct <= experts.top_k:
        return 1.0

    def excess(share: float) -> float:
        return float(unique_experts(replace(experts, shared_choice=share), rows)) - distinct

    return float(brentq(excess, chance, 1.0))
