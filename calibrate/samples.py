"""Samples, and the lines of a session that they are derived from.

A visit of a probe is one line. Samples are always computed from all the lines: low quantiles
over all sweeps, the links of linear chains taken off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, final

import numpy as np

from calibrate.timing import Visit, summarise

Settings: TypeAlias = tuple[tuple[str, str | int], ...]

REFERENCE = "reference"
PASS_PROBES = ("layers", "host")
"""Probes of whole passes: what they time the host may take part in."""


def settings_text(settings: Settings) -> str:
    """Settings as one line of text.

    >>> settings_text((("format", "4bit"), ("rows", 5)))
    'format=4bit rows=5'
    """
    return " ".join(f"{name}={value}" for name, value in settings)


def settings_from_text(text: str) -> Settings:
    """The settings that a text says; what is all digits is a number.

    >>> settings_from_text("format=4bit rows=5")
    (('format', '4bit'), ('rows', 5))
    """
    pairs = (word.partition("=")[::2] for word in text.split())
    return tuple((name, int(value) if value.isdecimal() else value) for name, value in pairs)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one probe measured.

    `seconds` is per unit of work, a low quantile over all repetitions of all sweeps. For linear
    probes it is net of the link, and `link_s` is what was taken off. `spread` is how far the
    first quartile lies above the low quantile, relative to it; `doubling` the time of twice the
    units over the time of the units (2 where all is well, None where there was no time to try);
    `at` when it was first visited, in seconds since the session began.
    """

    probe: str
    settings: Settings
    seconds: float
    spread: float
    repeats: int
    at: float
    doubling: float | None
    link_s: float = 0.0

    def number(self, name: str, default: int | None = None) -> int:
        """A setting that is a count; `default` is what it is if left out."""
        found = dict(self.settings).get(name, default)
        if found is None:
            raise KeyError(name)
        return int(found)

    def text(self, name: str) -> str:
        """A setting that is a name."""
        return str(dict(self.settings)[name])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSample:
    """A sample as a profile keeps it: `settings` as `settings_text` writes them."""

    probe: str
    settings: str
    seconds: float
    spread: float
    repeats: int
    at: float
    doubling: float | None
    link_s: float

    @staticmethod
    def of(sample: Sample) -> StoredSample:
        """What a profile keeps of a sample."""
        return StoredSample(
            probe=sample.probe,
            settings=settings_text(sample.settings),
            seconds=sample.seconds,
            spread=sample.spread,
            repeats=sample.repeats,
            at=sample.at,
            doubling=sample.doubling,
            link_s=sample.link_s,
        )

    @property
    def sample(self) -> Sample:
        """The sample again."""
        return Sample(
            probe=self.probe,
            settings=settings_from_text(self.settings),
            seconds=self.seconds,
            spread=self.spread,
            repeats=self.repeats,
            at=self.at,
            doubling=self.doubling,
            link_s=self.link_s,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One visit of a probe in a sweep, or the reason why there was none.

    `settings` as `settings_text` writes them; `at` in seconds since the session began.
    """

    probe: str
    settings: str
    sweep: int
    at: float
    visit: Visit | None = None
    reason: str | None = None


def samples_of(lines: Iterable[Line]) -> tuple[Sample, ...]:
    """The samples that lines add up to, in the order of their first visit.

    Each visit of the reference kernel stays a sample of its own: they show drift.
    """
    grouped: dict[tuple[str, str, float], list[Line]] = defaultdict(list)
    for line in lines:
        apart = line.at if line.probe == REFERENCE else 0.0
        if line.visit is not None:
            grouped[line.probe, line.settings, apart].append(line)
    return tuple(net_of_links([_summed_up(group) for group in grouped.values()]))


def _summed_up(lines: Sequence[Line]) -> Sample:
    timing = summarise(line.visit for line in lines if line.visit is not None)
    return Sample(
        probe=lines[0].probe,
        settings=settings_from_text(lines[0].settings),
        seconds=timing.seconds,
        spread=timing.spread,
        repeats=timing.repeats,
        at=lines[0].at,
        doubling=timing.doubling,
    )


def net_of_links(gross: Sequence[Sample]) -> Iterator[Sample]:
    """The samples with linear ones freed of their links.

    A link is measured at a few rows and interpolated between them, since it grows with the
    activations. A product that takes no longer than its link alone says nothing, and neither
    does one whose link is unknown: they are left out.
    """
    links: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    for sample in gross:
        if sample.probe == "link":
            shape = sample.number("depth"), sample.number("columns")
            links[shape][sample.number("rows")] = sample.seconds
    for sample in gross:
        if sample.probe != "linear":
            yield sample
            continue
        known = links.get((sample.number("depth"), sample.number("columns")))
        if known is not None:
            rows = sorted(known)
            link_s = float(np.interp(sample.number("rows"), rows, [known[row] for row in rows]))
            if sample.seconds > link_s:
                yield replace(sample, seconds=sample.seconds - link_s, link_s=link_s)


def drift(samples: Iterable[Sample]) -> float:
    """How much slower the reference kernel was at its slowest than at its fastest: 0.1 is 10 %."""
    seconds = [sample.seconds for sample in samples if sample.probe == REFERENCE]
    return max(seconds) / min(seconds) - 1 if seconds else 0.0
