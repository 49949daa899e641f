"""`tokroof machines`: the machines that can be predicted for, and their constants."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from model.catalog import packaged_profile_text
from model.commands.table import table
from model.errors import InputError
from model.machine.constant import Origin
from model.machine.profile import Profile
from model.machine.profile_store import (
    choose_profile,
    machine_names,
    named_profile,
    own_profiles,
)

ORIGINS = {origin.label: origin for origin in Origin}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the list shows of a machine; constants by name are as they are stated.

    `n_samples` are the samples that were fitted to it, `residual_log` how far a pass of a model
    that the fit has not seen strays from its prediction, as one standard error in logs.
    """

    name: str
    chip: str
    runtime: str
    residual_log: float
    n_samples: int
    constants: Mapping[str, Mapping[str, Any]]

    @property
    def origin(self) -> Origin:
        """Where the weakest of its constants comes from."""
        return max(ORIGINS[each["origin"]] for each in self.constants.values())

    @property
    def pass_origin(self) -> Origin:
        """Where the weakest of the bandwidths comes from that plain decoding is priced with."""
        rates = [
            ORIGINS[each["origin"]]
            for name, each in self.constants.items()
            if name.endswith(".1.bandwidth_bytes_per_s")
        ]
        return max(rates, default=self.origin)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `machines`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="show one machine's constants")
    parser.add_argument(
        "--against", metavar="NAME", help="with each constant's ratio to another machine's"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """List, or show one."""
    if options.name is not None:
        profile = choose_profile(options.name).profile
        other = None if options.against is None else choose_profile(options.against).profile
        if options.json:
            print(json.dumps([as_json(profile, other)], indent=2))
        else:
            print(constants_text(profile, other))
        return 0
    if options.against is not None:
        right = "name the machine that is compared"
        raise InputError(f"--against {options.against}", "compares nothing", right)
    own = own_profiles()
    entries = [
        entry_of(named_profile(name)) if name in own else packaged_entry(name)
        for name in machine_names()
    ]
    if options.json:
        print(json.dumps([entry_json(entry) for entry in entries], indent=2))
        return 0
    rows = [
        [
            each.name,
            each.chip,
            each.runtime,
            each.pass_origin.label,
            str(each.n_samples),
            f"{100 * each.residual_log:.1f} %",
        ]
        for each in entries
    ]
    print(table(["name", "chip", "runtime", "origin", "n", "error"], rows))
    return 0


def entry_of(profile: Profile) -> Entry:
    """The entry of a profile."""
    header = profile.header
    return Entry(
        name=header.name,
        chip=header.chip,
        runtime=header.runtime,
        residual_log=header.residual_log,
        n_samples=len(profile.samples),
        constants={name: constant.stated for name, constant in profile.constants.items()},
    )


def packaged_entry(name: str) -> Entry:
    """The same of a shipped profile, read without its draws: there are dozens to list."""
    document: dict[str, Any] = json.loads(packaged_profile_text(name))
    return Entry(
        name=document["name"],
        chip=document["chip"],
        runtime=document["runtime"],
        residual_log=document["residual_log"],
        n_samples=len(document.get("samples", [])),
        constants={
            key: {field: value for field, value in stated.items() if field != "draws"}
            for key, stated in document["constants"].items()
        },
    )


def constants_text(profile: Profile, other: Profile | None = None) -> str:
    """Every constant with its standard error, unit and origin, and its ratio to another's."""
    compared = ratios(profile, other)
    rows = [
        [name, f"{c.value:.4g}", f"{c.stderr:.2g}", c.unit, c.origin.label]
        + ([] if other is None else [f"{compared[name]:.3g}" if name in compared else "-"])
        for name, c in profile.constants.items()
    ]
    header = profile.header
    title = f"{header.name}: {header.chip}, {header.runtime}, calibrated {header.created}"
    columns = ["constant", "value", "stderr", "unit", "origin"]
    if other is not None:
        columns.append(f"over {other.header.name}'s")
    return title + "\n" + table(columns, rows)


def ratios(profile: Profile, other: Profile | None) -> dict[str, float]:
    """Each constant over the other profile's of that name, where that has one above 0."""
    if other is None:
        return {}
    return {
        name: constant.value / other.constants[name].value
        for name, constant in profile.constants.items()
        if name in other.constants and other.constants[name].value > 0.0
    }


def as_json(profile: Profile, other: Profile | None = None) -> dict[str, Any]:
    """One machine in the schema of `machines --json`."""
    document = entry_json(entry_of(profile))
    if other is not None:
        document |= {"against": other.header.name, "ratios": ratios(profile, other)}
    return document


def entry_json(entry: Entry) -> dict[str, Any]:
    """The same of an entry."""
    return {
        "name": entry.name,
        "chip": entry.chip,
        "runtime": entry.runtime,
        "origin": entry.origin.label,
        "pass_origin": entry.pass_origin.label,
        "residual_log": entry.residual_log,
        "n_samples": entry.n_samples,
        "constants": entry.constants,
    }
