"""What a fitted profile makes of its own samples: each beside the time that it predicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from calibrate.fit.attention_laws import (
    SCORES,
    attention_floors_s,
    attention_observations,
    attention_shape,
)
from calibrate.fit.laws import linear_observations
from calibrate.fit.observations import Observations
from calibrate.fit.pass_timings import format_name, probe_cost
from calibrate.samples import PASS_PROBES, Sample, settings_text
from model.cost.pipeline import awaited_s, pipelined_s
from model.machine.machine import Machine
from model.machine.overlap import larger
from model.machine.profile import ALIGNED, TWO_PASS, UNFUSED, Profile
from model.machine.row_law import RowLaw, shape_of
from model.units import Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """A sample, and the time that the profile predicts for it.

    Of single products both times are net of what is priced apart, as the fit has them: the floor of
    their kernels and, where no one kernel attends, the traffic of the scores, in `apart_s`.
    """

    probe: str
    settings: str
    rows: int
    measured_s: float
    predicted_s: float
    apart_s: float = 0.0

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted_s / self.measured_s - 1.0


def residuals(profile: Profile, samples: Sequence[Sample]) -> tuple[Residual, ...]:
    """Products, attention and passes beside their predictions; other probes fit nothing here.

    A sample of a format that the profile has no law for is left out.
    """
    machine = profile.machine
    kernel_s = float(np.asarray(machine.device.kernel_s))
    found: list[Residual] = []
    groups: dict[RowLaw, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.probe == "linear":
            shape = shape_of(depth=sample.number("depth"), columns=sample.number("columns"))
            law = machine.laws.get((format_name(sample), shape))
            if law is not None:
                groups[law].append(sample)
    for law, group in groups.items():
        found += _of_law(law, group, linear_observations(group, kernel_s, 0.0))
    caches: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.probe == "attention":
            caches[attention_shape(sample, machine.vector_attention)].append(sample)
    special = {
        TWO_PASS: machine.two_pass_attention,
        UNFUSED: machine.unfused_attention,
        ALIGNED: machine.aligned_attention,
    }
    floors = attention_floors_s(caches, kernel_s)
    for shape, group in caches.items():
        seen = attention_observations(
            group,
            floors[shape],
            0.0,
            machine.activation_bytes,
            unfused=shape in SCORES,
            score_s=float(np.asarray(machine.device.score_s)),
        )
        found += _of_law(special.get(shape) or machine.attention, group, seen)
    formats = {name for name, _ in machine.laws}
    found += [
        Residual(
            probe=sample.probe,
            settings=settings_text(sample.settings),
            rows=sample.number("rows"),
            measured_s=sample.seconds,
            predicted_s=pass_s(sample, machine),
        )
        for sample in samples
        if sample.probe in PASS_PROBES and format_name(sample) in formats
    ]
    return tuple(found)


def _of_law(law: RowLaw, samples: Sequence[Sample], seen: Observations) -> list[Residual]:
    predicted_s = np.asarray(law.time(seen.product, seen.rows).total_s, dtype=float)
    return [
        Residual(
            probe=sample.probe,
            settings=settings_text(sample.settings),
            rows=int(rows),
            measured_s=float(measured),
            predicted_s=float(predicted),
            apart_s=sample.seconds - float(measured),
        )
        for sample, rows, measured, predicted in zip(
            samples, seen.rows, seen.seconds, predicted_s, strict=True
        )
    ]


def pass_s(sample: Sample, machine: Machine) -> float:
    """The time of a measured pass, by the way it was run (:mod:`calibrate.fit.overheads`)."""
    mode = sample.text("mode")
    if mode != "growing":  # the context of all other probes stays as it was
        machine = replace(machine, host=replace(machine.host, reshape_s=0.0))
    cost = probe_cost(sample, machine)
    busy_s = larger(cost.device_s, cost.submit_s)
    waited_s = awaited_s([cost], machine.host.sync_s)
    ways: dict[str, Quantity] = {
        "build": cost.build_s,
        "submit": busy_s,
        "queued": cost.device_s,
        "pipelined": busy_s,
        "decode": pipelined_s(cost, machine.host.read_s),
        "awaited": waited_s,
        "growing": waited_s,
    }
    return float(np.asarray(ways[mode]))
