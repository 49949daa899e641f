"""Real runs as equations in the unknown overheads: the time of a round, by the whole model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from calibrate.fit.pass_timings import with_constants, without_overheads
from calibrate.run_record import Run
from calibrate.run_strategy import strategy_of
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.strategies.base import AbstractStrategy
from model.units import Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunTimings:
    """Measured rounds, and what was asked in each; `names` are those of the unknowns."""

    names: tuple[str, ...]
    machine: Machine
    questions: tuple[tuple[AbstractStrategy, Checkpoint, float], ...]
    seconds: tuple[float, ...]

    def predict_s(self, unknowns: Array) -> Array:
        """Times of all rounds; (draws, rounds) where the machine's laws are drawn."""
        values = dict(zip(self.names, unknowns.tolist(), strict=True))
        machine = with_constants(self.machine, values)
        times = [
            strategy.round(target, machine, context).round_s
            for strategy, target, context in self.questions
        ]
        return np.stack(np.broadcast_arrays(*times), axis=-1) if times else np.empty(0)


def run_timings(runs: Sequence[Run], names: Sequence[str], machine: Machine) -> RunTimings:
    """The rounds of these runs on a machine whose overheads are taken out."""
    return RunTimings(
        names=tuple(names),
        machine=without_overheads(machine),
        questions=tuple(strategy_of(run, machine) for run in runs),
        seconds=tuple(run.typical_round_s for run in runs),
    )
