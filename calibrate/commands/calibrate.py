"""`tokroof calibrate`: measure this machine and fit its profile."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from calibrate.commands import own_samples
from calibrate.environment import Environment, read_environment
from calibrate.fit.calibration import fit_profile, refit_profile
from calibrate.grid import MODES
from calibrate.measure import run_calibration
from calibrate.run_file import read_runs
from calibrate.run_record import Run
from model.commands.machines import as_json, constants_text
from model.errors import InputError
from model.machine.profile import Profile
from model.machine.profile_file import write_profile
from model.machine.profile_store import check_profile_name, choose_profile, profiles_folder

FITTED = ("plain", "speculative")
"""Strategies of runs that a fit uses; the others are kept to be predicted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `calibrate`."""
    parser.add_argument(
        "--mode", default="quick", help=f"{' or '.join(MODES)}: minutes or a few (default: quick)"
    )
    parser.add_argument(
        "--formats", metavar="F,F", default="", help="weight formats (default: 4bit,8bit,bf16)"
    )
    parser.add_argument("--name", help="name of the profile (default: chip and runtime)")
    parser.add_argument("--output", metavar="FILE", help="write the profile here instead")
    parser.add_argument(
        "--refit", metavar="PROFILE", help="measure nothing: fit this profile's samples again"
    )
    parser.add_argument(
        "--residuals",
        metavar="PROFILE",
        help="measure nothing: what this profile makes of its own samples",
    )
    parser.add_argument("--runs", metavar="RUNS", help="let real runs join the fit")
    parser.add_argument(
        "--runs-of", metavar="MODEL", help="only those of this target; keep the others for scoring"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="start over, whatever an interrupted run left"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, as `machines --json`")


def execute(options: argparse.Namespace) -> int:
    """Measure, fit, write, and say what came out; or only what a profile makes of its samples."""
    if options.residuals is not None:
        return own_samples.execute(options.residuals, as_json=options.json)
    runs = fitting_runs(options)
    output = None if options.output is None else Path(options.output)
    if output is not None and output.is_dir():
        raise InputError(f"--output {options.output}", "is a folder", "give a file")
    if options.refit is not None:
        profile = refit_profile(choose_profile(options.refit).profile, runs)
        path = output or profiles_folder() / f"{check_profile_name(profile.header.name)}.json"
        write_profile(profile, path)
    else:
        profile, path = calibrate(
            mode=options.mode,
            formats=[name for name in options.formats.split(",") if name],
            name=check_profile_name(options.name or default_name(read_environment())),
            output=output,
            fresh=options.fresh,
            runs=runs,
        )
    if options.json:
        print(json.dumps(as_json(profile), indent=2))
        return 0
    print(constants_text(profile))
    print(f"left on whole passes: {100 * profile.header.residual_log:.1f} %")
    print(f"written to {path}", file=sys.stderr)
    return 0


def fitting_runs(options: argparse.Namespace) -> list[Run]:
    """The runs that join the fit: predicted ones, of one target if asked, with their own draft.

    A target that drafts for itself meets attention shapes that its verify passes planned before,
    so its rounds do not show what a new context costs.

    Raises:
        InputError: no run is left.
    """
    if options.runs is None:
        if options.runs_of is not None:
            flag = f"--runs-of {options.runs_of}"
            raise InputError(flag, "says which runs, and there are none", "add --runs FILE")
        return []
    found = read_runs(Path(options.runs))
    runs = [run for run in found if run.strategy in FITTED and run.draft != run.target]
    if not runs:
        wrong = "holds no run that a fit can use"
        raise InputError(options.runs, wrong, "record plain runs, or ones with a smaller draft")
    chosen = [run for run in runs if options.runs_of in (None, run.target)]
    if not chosen:
        targets = ", ".join(sorted({run.target for run in runs}))
        raise InputError(f"--runs-of {options.runs_of}", "leaves no run", f"one of {targets}")
    return chosen


def calibrate(
    *,
    mode: str,
    formats: list[str],
    name: str,
    output: Path | None = None,
    fresh: bool = False,
    runs: Sequence[Run] = (),
) -> tuple[Profile, Path]:
    """Measure this machine and write its profile; an interrupted measurement goes on.

    The session file stays beside the profiles until the profile is written.

    Raises:
        InputError: an unknown mode or format, or a session of another environment.
    """
    session_path = profiles_folder().parent / "sessions" / f"{name}-{mode}.jsonl"
    # An unknown mode names no file of ours; it is refused below.
    if fresh and mode in MODES:
        session_path.unlink(missing_ok=True)
    session = run_calibration(mode, formats, session_path)
    profile = fit_profile(
        session.samples,
        session.header.environment,
        name=name,
        runs=runs,
        created=datetime.fromtimestamp(session.header.began, UTC).isoformat(timespec="seconds"),
    )
    path = output or profiles_folder() / f"{name}.json"
    write_profile(profile, path)
    session_path.unlink(missing_ok=True)
    return profile, path


def default_name(environment: Environment) -> str:
    """Chip and runtime as a file name."""
    text = f"{environment.chip} {environment.runtime}".lower()
    return re.sub(r"[^a-z0-9.]+", "-", text).strip("-")
