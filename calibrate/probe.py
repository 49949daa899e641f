"""A probe is one question to a device; a plan is the questions, their order and the patience."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from calibrate.samples import REFERENCE, Settings, settings_text
from calibrate.timing import Pace

PREPARATION = 1.2
"""Building graphs and other work outside the clock, as a factor on the time inside."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One kind of work with its settings.

    `material` names what it is made of (matrices, caches, a network): neighbours with the same
    material share it. `unit_s` guesses one unit of work, `make_s` making the material, and
    `memory_bytes` is what the material takes.
    """

    probe: str
    settings: Settings
    material: str
    unit_s: float
    make_s: float
    memory_bytes: int

    @property
    def label(self) -> str:
        """The settings in one line."""
        return settings_text(self.settings)

    def number(self, name: str, default: int | None = None) -> int:
        """A setting that is a count; `default` is what it is if left out."""
        found = dict(self.settings).get(name, default)
        if found is None:
            raise KeyError(name)
        return int(found)

    def text(self, name: str) -> str:
        """A setting that is a name."""
        return str(dict(self.settings)[name])

    def visit_s(self, pace: Pace, *, first: bool) -> float:
        """Expected time of one visit; the first also finds the length of the chain and checks."""
        chain_s = max(self.unit_s, pace.repetition_s)
        chains = 0.25 + pace.repeats + (1.75 if first else 0.0)
        return PREPARATION * min(chains * chain_s + self.unit_s, 2 * pace.limit_s)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that one calibration measures.

    All probes are visited once per sweep, so that a drift of the device meets all alike; the
    reference kernel is visited at the start, at the end and every `reference_every` probes.
    """

    mode: str
    formats: tuple[str, ...]
    probes: tuple[Probe, ...]
    reference: Probe
    reference_every: int
    sweeps: int
    pace: Pace
    memory_bytes: int

    def sweep(self, number: int) -> Iterator[Probe]:
        """The probes of a sweep: there and back, so that none is always the first."""
        order = self.probes if number % 2 == 0 else self.probes[::-1]
        for position, probe in enumerate(order):
            if position % self.reference_every == 0:
                yield self.reference
            yield probe
        yield self.reference

    def expected_s(self, probes: Iterable[Probe], sweep: int) -> list[float]:
        """Expected time of each of these probes, visited in this order."""
        times: list[float] = []
        held = ""
        for probe in probes:
            made = probe.probe == REFERENCE or probe.material in ("", held)
            held = held if made else probe.material
            seconds = probe.visit_s(self.pace, first=sweep == 0 and probe.probe != REFERENCE)
            times.append(seconds if made else seconds + probe.make_s)
        return times

    @property
    def total_s(self) -> float:
        """Expected time of the whole plan."""
        return sum(sum(self.expected_s(self.sweep(n), n)) for n in range(self.sweeps))

    @property
    def fingerprint(self) -> str:
        """Equal for plans that ask the same questions in the same way."""
        said = [f"{self.sweeps} {self.pace} {self.reference.label}"]
        said += [f"{probe.probe} {probe.label}" for probe in self.probes]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]
