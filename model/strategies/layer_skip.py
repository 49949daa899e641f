r"""Self-speculative decoding by skipping layers: the target drafts for itself, incompletely.

The draft is the target without some sublayers (:mod:`model.network.sublayers`). With f the
skipped share of the layers' time, h the share of head and fixed cost in a plain pass and s what a
second row adds to a verify pass, one draft token pays when

.. math:: \alpha > (1 - f)(1 - h) + h + s

so a draft that skips half its layers still has to be right more than half the time; the exact
answer comes from the rounds of :mod:`model.strategies.drafted`.

Assumes a draft cache of its own for the mixers that are kept, trimmed with the target's; after a
round that accepted everything the draft's first pass has two rows, as with a draft model. The
weights are in memory once. The verify pass recomputes every layer: nothing of the draft's hidden
states is reused, which LayerSkip (Elhoushi et al. 2024, arXiv 2404.16710) does for early exits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.cost.cache_growth import growth_s
from model.cost.forward import PassCost, forward_pass
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.sublayers import Half, Sublayer, without
from model.strategies.base import Settings
from model.strategies.drafted import AbstractDrafted
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSkip(AbstractDrafted):
    """A draft of the target's own layers but for the `skipped` ones."""

    skipped: frozenset[Sublayer]

    @property
    def name(self) -> str:  # noqa: D102
        return "layer-skip"

    @property
    def settings(self) -> Settings:  # noqa: D102
        return {
            "skipped_attention": self._layers(Half.MIXER),
            "skipped_mlp": self._layers(Half.MLP),
            **self.drafted_settings,
        }

    def _layers(self, half: Half) -> list[float]:
        return sorted(each.layer for each in self.skipped if each.half is half)

    def draft(self, target: Checkpoint) -> Checkpoint:
        """The network that drafts.

        Raises:
            InputError: a sublayer that the target does not have, or none left.
        """
        return without(target, self.skipped)

    def draft_pass(  # noqa: D102
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        draft = self.draft(target)
        return forward_pass(draft, machine, rows=rows, context=context, sequences=self.sequences)

    def draft_growth_s(  # noqa: D102
        self, target: Checkpoint, machine: Machine, context: Quantity
    ) -> Quantity:
        return growth_s(self.draft(target), machine, context=context, sequences=self.sequences)

    def shared_cache_bytes(self, target: Checkpoint, context: float) -> float:
        """The caches of the draft; its weights are the target's."""
        return self.sequences * float(self.draft(target).kv_cache_bytes(context))

    def warnings(self, target: Checkpoint) -> tuple[str, ...]:  # noqa: D102
        return self.rewind_warnings(target)
