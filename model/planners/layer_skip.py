"""Which shares of skipped layers and draft lengths can pay, and at which acceptance.

Every cell of the plan is solved on its own: the acceptance its draft would need, and the speedup
it would have if it were always right, which no acceptance can exceed. With measured acceptances
by skipped share, each cell has its speedup too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.sublayers import middle_block
from model.prediction.break_even import break_even
from model.prediction.round_costs import round_costs
from model.progress.acceptance import Acceptance
from model.strategies.layer_skip import LayerSkip

NEVER = Acceptance(by_position=(0.0,))
ALWAYS = Acceptance(by_position=(1.0,))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SkipCell:
    """One share of uniformly skipped middle layers with one draft length.

    `needed_acceptance` is None where no acceptance wins; `speedup_at_most` is what a draft that
    is always right would give; `speedup` is None where no acceptance is known for the share.
    """

    skip_fraction: float
    draft_length: int
    needed_acceptance: float | None
    speedup_at_most: float
    acceptance: float | None
    speedup: float | None


def plan_layer_skip(
    target: Checkpoint,
    machine: Machine,
    *,
    context: float,
    fractions: Sequence[float],
    draft_lengths: Sequence[int],
    acceptance_at: Callable[[float], float | None] = lambda fraction: None,
) -> tuple[SkipCell, ...]:
    """Price every cell; `acceptance_at` gives what is known of a share, or None.

    Raises:
        InputError: a fraction that leaves too few layers, or a draft length no round can have.
    """
    cells: list[SkipCell] = []
    for fraction in fractions:
        skipped = middle_block(target.architecture, fraction)
        strategy = LayerSkip(skipped=skipped, draft_length=1, acceptance=NEVER)
        costs = round_costs(strategy, target, machine, context=context, draft_lengths=draft_lengths)
        known = acceptance_at(fraction)
        rates = None if known is None else Acceptance(by_position=(known,))
        speedups = None if rates is None else costs.speedup(rates).tolist()
        cells += [
            SkipCell(
                skip_fraction=fraction,
                draft_length=length,
                needed_acceptance=needed,
                speedup_at_most=at_most,
                acceptance=known,
                speedup=None if speedups is None else speedups[index],
            )
            for index, (length, needed, at_most) in enumerate(
                zip(draft_lengths, break_even(costs), costs.speedup(ALWAYS).tolist(), strict=True)
            )
        ]
    return tuple(cells)
