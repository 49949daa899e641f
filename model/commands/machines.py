"""`tokroof machines`: the machines that can be predicted for, and their constants."""

from __future__ import annotations

import argparse
import json
from typing import Any

from model.commands.table import table
from model.machine.profile import Profile
from model.machine.profile_store import machine_names, named_profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `machines`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="show one machine's constants")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """List, or show one."""
    names = machine_names() if options.name is None else [options.name]
    profiles = [named_profile(name) for name in names]
    if options.json:
        print(json.dumps([as_json(profile) for profile in profiles], indent=2))
        return 0
    if options.name is None:
        rows = [
            [
                p.header.name,
                p.header.chip,
                p.header.runtime,
                p.origin.label,
                str(len(p.samples)),
                f"{100 * p.header.residual_log:.1f} %",
            ]
            for p in profiles
        ]
        print(table(["name", "chip", "runtime", "origin", "samples", "residual"], rows))
        return 0
    print(constants_text(profiles[0]))
    return 0


def constants_text(profile: Profile) -> str:
    """Every constant with its standard error, unit and origin."""
    rows = [
        [name, f"{c.value:.4g}", f"{c.stderr:.2g}", c.unit, c.origin.label]
        for name, c in profile.constants.items()
    ]
    header = profile.header
    title = f"{header.name}: {header.chip}, {header.runtime}, calibrated {header.created}"
    return title + "\n" + table(["constant", "value", "stderr", "unit", "origin"], rows)


def as_json(profile: Profile) -> dict[str, Any]:
    """One machine in the schema of `machines --json`."""
    return {
        "name": profile.header.name,
        "chip": profile.header.chip,
        "runtime": profile.header.runtime,
        "origin": profile.origin.label,
        "n_samples": len(profile.samples),
        "constants": {name: constant.stated for name, constant in profile.constants.items()},
    }
