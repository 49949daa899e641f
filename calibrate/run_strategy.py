"""The question that a real run answers: its strategy, its target and its context."""

from __future__ import annotations

from calibrate.run_record import Run
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.target import load_target
from model.progress.acceptance import Acceptance
from model.strategies.base import AbstractStrategy
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative

PREDICTED = ("plain", "speculative")
"""Strategies of runs that the model prices; an awaited run is not one."""


def strategy_of(run: Run, machine: Machine) -> tuple[AbstractStrategy, Checkpoint, float]:
    """Strategy, target and mean context of a predicted run; its progress is taken, not its times.

    Raises:
        InputError: the target or draft is not known.
    """
    target = machine.as_run(load_target(run.target, run.target_format))
    strategy: AbstractStrategy = Plain()
    if run.strategy == "speculative":
        strategy = Speculative(
            draft=machine.as_run(load_target(run.draft, run.draft_format)),
            draft_length=run.draft_length,
            acceptance=Acceptance(by_position=run.acceptance_by_position),
        )
    # Half of the output is in the cache on average.
    return strategy, target, run.context_tokens + run.tokens / 2.0
