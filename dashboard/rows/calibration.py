"""A calibration as rows of charts: its constants, its residuals, and its reference kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from calibrate.fit.residuals import Residual
from calibrate.samples import Sample
from dashboard.rows.constant_names import meaning
from model.commands.machines import ratios
from model.machine.constant import Constant
from model.machine.profile import Profile
from model.units import MICRO

NORMAL_90 = 1.645
"""A normal distribution has 90 % within so many standard errors."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantRow:
    """A constant of a profile in its unit, and relative to the one that it is compared with.

    `meaning` says what it is of. `relative` is the value over that of the profile which the
    picture is about, with the ends of its 90 % interval; None where that is 0.
    """

    label: str
    meaning: str
    profile: str
    value: float
    stderr: float
    unit: str
    origin: str
    relative: float | None
    low: float | None
    high: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualRow:
    """A sample beside the profile's own prediction of it."""

    probe: str
    settings: str
    rows: int
    measured_us: float
    predicted_us: float
    error_percent: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRow:
    """A visit of the reference kernel: minutes since the session began, and its time."""

    at_min: float
    time_us: float


def constant_rows(profile: Profile, other: Profile | None) -> tuple[ConstantRow, ...]:
    """The constants of a profile, each followed by the other profile's of that name."""
    rows: list[ConstantRow] = []
    for name, constant in profile.constants.items():
        rows.append(_row(name, profile.header.name, constant, constant.value))
        if other is not None and name in other.constants:
            against = f"against {other.header.name}"
            rows.append(_row(name, against, other.constants[name], constant.value))
    return tuple(rows)


def _row(name: str, profile: str, constant: Constant, one: float) -> ConstantRow:
    known = one > 0.0
    spread = NORMAL_90 * constant.stderr
    return ConstantRow(
        label=name,
        meaning=meaning(name),
        profile=profile,
        value=constant.value,
        stderr=constant.stderr,
        unit=constant.unit,
        origin=constant.origin.label,
        relative=constant.value / one if known else None,
        low=max(constant.value - spread, 0.0) / one if known else None,
        high=(constant.value + spread) / one if known else None,
    )


def largest_change(profile: Profile, other: Profile) -> tuple[str, float] | None:
    """The constant that differs most from the other profile's, and its ratio to that."""
    found = {name: ratio for name, ratio in ratios(profile, other).items() if ratio > 0.0}
    if not found:
        return None
    name = max(found, key=lambda each: max(found[each], 1.0 / found[each]))
    return name, found[name]


def residual_rows(found: Sequence[Residual]) -> tuple[ResidualRow, ...]:
    """One row for each sample that the profile predicts."""
    return tuple(
        ResidualRow(
            probe=each.probe,
            settings=each.settings,
            rows=each.rows,
            measured_us=each.measured_s / MICRO,
            predicted_us=each.predicted_s / MICRO,
            error_percent=100.0 * each.error,
        )
        for each in found
    )


def reference_rows(visits: Sequence[Sample]) -> tuple[ReferenceRow, ...]:
    """A row for each visit of the reference kernel."""
    return tuple(
        ReferenceRow(at_min=sample.at / 60.0, time_us=sample.seconds / MICRO) for sample in visits
    )
