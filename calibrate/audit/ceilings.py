"""Memory bandwidths of chips as somebody measured them, below Apple's figures.

A read that is faster than the nominal figure is impossible; one between the measured and the
nominal figure is suspicious, for the measurement may have been a poor one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.units import GB


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBandwidth:
    """The best GPU read or STREAM rate that was measured on a chip of this nominal bandwidth."""

    chip: str
    nominal_bytes_per_s: float
    measured_bytes_per_s: float
    source: str


_STREAM = "Metal STREAM, arXiv:2502.05317"
_DAMON = "Metal STREAM, median of ten runs, Beischl et al., DaMoN 2026"
_PROBE = "6 GiB bf16 sum, best of 8, github:defai-digital/ax-engine docs (bandwidth probe)"

MEASURED = tuple(
    MeasuredBandwidth(
        chip=chip,
        nominal_bytes_per_s=nominal * GB,
        measured_bytes_per_s=measured * GB,
        source=source,
    )
    for chip, nominal, measured, source in (
        ("M1", 68.25, 60.0, _STREAM),
        ("M2", 100.0, 91.0, _STREAM),
        ("M3", 100.0, 92.0, _STREAM),
        ("M4", 120.0, 100.0, _STREAM),
        ("M4 Pro", 273.0, 253.0, "github:taneja-rohit/mac-ml-benchmark@d4a5fd8b results/raw"),
        ("M3 Ultra", 819.2, 738.0, _DAMON),
        ("M5", 153.6, 122.0, "Metal STREAM on MacBook Air, michaelstinkerings.org"),
        ("M3 Max", 400.0, 349.7, _PROBE),
        ("M5 Max", 614.0, 577.0, _PROBE),
    )
)


def measured_bandwidth(chip: str, nominal_bytes_per_s: float) -> MeasuredBandwidth | None:
    """The measurement of a chip, if there is one for this nominal figure (to 3 %).

    >>> measured_bandwidth("M3", 100e9).measured_bytes_per_s / GB
    92.0
    """
    for each in MEASURED:
        if each.chip == chip and abs(nominal_bytes_per_s / each.nominal_bytes_per_s - 1.0) < 0.03:
            return each
    return None
