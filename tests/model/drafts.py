"""Drafts made for tests: one that costs nothing, one that catches up, one of a stated time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.cost.forward import PassCost, forward_pass
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.strategies.base import Settings
from model.strategies.drafted import AbstractDrafted
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FreeDraft(AbstractDrafted):
    """Guesses that fall from the sky: a round is the verify pass alone."""

    @property
    def name(self) -> str:
        return "free"

    @property
    def settings(self) -> Settings:
        return self.drafted_settings

    def first_rows(self, accepted: int) -> int:
        return 0

    @property
    def later_rows(self) -> tuple[int, ...]:
        return ()

    def draft_pass(
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        raise AssertionError("there is no draft pass")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CatchingUp(AbstractDrafted):
    """A trained head: its first pass has a row for every token that the round before committed."""

    head: Checkpoint

    @property
    def name(self) -> str:
        return "catching up"

    @property
    def settings(self) -> Settings:
        return self.drafted_settings

    def first_rows(self, accepted: int) -> int:
        return accepted + 1

    @property
    def later_rows(self) -> tuple[int, ...]:
        return (1,) * (self.draft_length - 1)

    def draft_pass(
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        return forward_pass(
            self.head, machine, rows=rows, context=context, sequences=self.sequences
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TimedDraft(AbstractDrafted):
    """A draft whose passes take a stated time on the device, whatever their rows."""

    draft_s: float

    @property
    def name(self) -> str:
        return "timed"

    @property
    def settings(self) -> Settings:
        return self.drafted_settings

    def first_rows(self, accepted: int) -> int:
        return 1

    @property
    def later_rows(self) -> tuple[int, ...]:
        return (1,) * (self.draft_length - 1)

    def draft_pass(
        self, target: Checkpoint, machine: Machine, context: Quantity, rows: int
    ) -> PassCost:
        return PassCost(
            weights_s=self.draft_s,
            kv_s=0.0,
            arithmetic_s=0.0,
            dispatch_s=0.0,
            lower_s=self.draft_s,
            upper_s=self.draft_s,
            build_s=0.0,
            submit_s=0.0,
        )
