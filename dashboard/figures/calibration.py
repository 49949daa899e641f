"""Calibration: what the constants of a machine rest on, and how well they explain it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import final

import numpy as np

from calibrate.commands.own_samples import probes, visits
from calibrate.doubts import warnings_of
from calibrate.fit.residuals import residuals
from calibrate.samples import drift
from dashboard.answers import once
from dashboard.charts.calibration import constants, reference_over_time, residual_points
from dashboard.command import Command, given
from dashboard.figure import Figure, in_words, literally
from dashboard.rows.calibration import (
    ConstantRow,
    constant_rows,
    largest_change,
    reference_rows,
    residual_rows,
)
from dashboard.selection import Selection
from model.machine.profile import Profile
from model.machine.profile_store import choose_profile
from model.units import GIB


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSettings:
    """The profile that is compared, by name or file; "" for none."""

    against: str = ""


@once
def calibration(selection: Selection, settings: CalibrationSettings) -> Figure:
    """The constants of the machine, and of another beside them.

    Raises:
        InputError: no such machine, or a file that is no profile.
    """
    choice = choose_profile(selection.machine)
    profile = choice.profile
    other = choose_profile(settings.against).profile if settings.against else None
    rows = constant_rows(profile, other)
    samples = probes(profile)
    return Figure(
        name="calibration",
        sentence=sentence(profile, other),
        chart=constants(rows),
        alternative=in_words("Standard error by constant", [in_short(row) for row in rows]),
        reading="A point is a constant over its value in this profile, a bar its 90 % interval "
        "(1.645 standard errors to either side). A diamond is the compared profile's. What is 0 "
        "here, or misses in the other, is in the table alone.",
        rows=rows,
        command=Command(
            name="machines",
            about=(selection.machine or profile.header.name,),
            settings=given(("--against", settings.against)),
        ),
        where=header_text(profile),
        cautions=(*choice.note.splitlines(), *warnings_of(samples), *notes(profile)),
    )


@once
def sample_residuals(selection: Selection) -> Figure | None:
    """The samples of a calibration beside its own predictions; None where it keeps none."""
    profile = choose_profile(selection.machine).profile
    rows = residual_rows(residuals(profile, probes(profile)))
    if not rows:
        return None
    by_probe: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        by_probe[row.probe].append(abs(row.error_percent))
    medians = {probe: float(np.median(errors)) for probe, errors in by_probe.items()}
    said = ", ".join(f"{probe} {median:.1f} %" for probe, median in medians.items())
    return Figure(
        name="residuals",
        sentence=f"**Half of the samples of each probe are explained within:** {said}.",
        chart=residual_points(rows),
        alternative=in_words(
            "Median residual by probe", [f"{probe} {m:.1f} %" for probe, m in medians.items()]
        ),
        reading="A point is a sample and what the fitted constants make of it: linear is one "
        "matrix, attention one cache, layers whole passes, host narrow ones that wait for the "
        "processor. They are in the fit, so this is no test of predictions.",
        rows=rows,
        command=of_samples(selection.machine or profile.header.name),
    )


@once
def drift_over_time(selection: Selection) -> Figure | None:
    """The reference kernel over the session; None where it was not visited twice."""
    profile = choose_profile(selection.machine).profile
    samples = probes(profile)
    rows = reference_rows(visits(samples))
    if len(rows) < 2:
        return None
    slowest = max(row.time_us for row in rows)
    return Figure(
        name="drift",
        sentence=f"**The machine drifted by {100 * drift(samples):.0f} %** between the fastest and "
        f"the slowest visit of one kernel, over {rows[-1].at_min:.0f} minutes.",
        chart=reference_over_time(rows),
        alternative=in_words(
            "Reference kernel over time", [f"{len(rows)} visits, the slowest {slowest:.4g} us"]
        ),
        reading="The same small product, visited between the probes: it would be a flat line on a "
        "machine that nothing disturbs and that does not heat up.",
        rows=rows,
        command=of_samples(selection.machine or profile.header.name),
    )


def of_samples(machine: str) -> Command:
    """The call that prints what a profile makes of its own samples."""
    return Command(name="calibrate", settings=(("--residuals", machine),))


def sentence(profile: Profile, other: Profile | None) -> str:
    """What the constants come from, what the fit left, and what differs from another profile."""
    fitted = sum("id" in stored for stored in profile.samples)
    measured = len(profile.samples) - fitted
    basis = "It keeps no samples: they are priors, or scaled from other machines."
    if measured:
        basis = f"{measured} samples were measured here."
    elif fitted:
        basis = f"They are fitted to {fitted} published runs of this machine, and those of others."
    said = (
        f"**{len(profile.constants)} constants: {profile.origins_text}.** {basis} Whole passes "
        "scatter about what they predict by "
        f"{100 * profile.header.residual_log:.1f} %, as one standard error."
    )
    changed = None if other is None else largest_change(profile, other)
    if other is not None and changed is not None:
        name, ratio = changed
        if ratio == 1.0:
            return f"{said} No constant differs from {literally(other.header.name)}'s."
        said += (
            f" It differs most from {literally(other.header.name)} in {literally(name)}, which is "
            f"{ratio:.3g} times as large here."
        )
    return said


def header_text(profile: Profile) -> str:
    """Chip, runtime, date, memory and what a profile was measured up to."""
    header = profile.header
    rows = max((law.rows_measured for law in header.laws), default=0)
    return (
        f"{header.name}: {header.chip}, {header.runtime}, {header.created[:10]}, "
        f"{header.memory_bytes / GIB:.0f} GB; measured up to {rows} rows and "
        f"{header.context_measured:,} tokens of context"
    )


def notes(profile: Profile) -> tuple[str, ...]:
    """What the file says of its own origin, in one line; none where it says nothing."""
    stated = profile.environment.items()
    said = [f"{name}: {text}" for name, text in stated if isinstance(text, str)]
    return ("; ".join(said),) if said else ()


def in_short(row: ConstantRow) -> str:
    """A row for who cannot see the chart."""
    share = f"{100 * row.stderr / row.value:.0f} %" if row.value else "no value"
    return f"{row.profile} {row.label} {share}"
