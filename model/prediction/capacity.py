r"""What must be in memory at a context, part by part, and the context at which it is too much.

The parts sum to the working set of :mod:`model.prediction.memory`, and grow with the context by
the caches alone, so the longest context that fits is found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.prediction.memory import BUFFER_BYTES, Feasibility, feasibility
from model.strategies.base import AbstractStrategy

LONGEST = 2**24
"""Tokens beyond which nobody asks, where a config states no limit."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Residents:
    """Bytes that a strategy keeps in memory, by what they are; they sum to the working set.

    `weights` and `cache` are of the first network (the target), `draft_*` of any other.
    """

    weights_bytes: float
    cache_bytes: float
    draft_weights_bytes: float
    draft_cache_bytes: float
    buffer_bytes: float
    memory: Feasibility


def residents(
    strategy: AbstractStrategy, target: Checkpoint, machine: Machine, *, context: float
) -> Residents:
    """The parts of a strategy's working set at a context.

    Caches over weights that are in memory anyway (a draft of the target's own layers) count as
    the draft's.
    """
    shared_cache_bytes = strategy.shared_cache_bytes(target, context)
    (first, first_caches), *others = strategy.residents(target)
    drafts = [(each.total_bytes, n * float(each.kv_cache_bytes(context))) for each, n in others]
    return Residents(
        weights_bytes=float(first.total_bytes),
        cache_bytes=first_caches * float(first.kv_cache_bytes(context)),
        draft_weights_bytes=float(sum(weights for weights, _ in drafts)),
        draft_cache_bytes=sum(cache for _, cache in drafts) + shared_cache_bytes,
        buffer_bytes=BUFFER_BYTES,
        memory=feasibility(
            strategy.residents(target),
            machine,
            context=context,
            shared_cache_bytes=shared_cache_bytes,
        ),
    )


def longest_context(
    strategy: AbstractStrategy, target: Checkpoint, machine: Machine
) -> tuple[int | None, bool]:
    """The most tokens that fit (None: not even an empty cache), and whether memory says so.

    It is False where the limit of a network that is resident comes first.
    """
    limits = [each.architecture.context_limit for each, _ in strategy.residents(target)]
    most = min([limit for limit in limits if limit is not None], default=LONGEST)

    def fits(context: int) -> bool:
        memory = residents(strategy, target, machine, context=float(context)).memory
        return memory.fits

    if fits(most):
        return most, False
    if not fits(0):
        return None, True
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low, True
