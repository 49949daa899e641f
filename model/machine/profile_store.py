"""Where profiles are found: the user's own calibrations first, then the packaged ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import final

from model.catalog import packaged_profile_names, packaged_profile_text
from model.errors import InputError, unknown_name
from model.machine.profile import Profile
from model.machine.profile_file import profile_from_json, read_profile

DEFAULT_MACHINE = "m3-10core-16gb"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A profile and how it came to be chosen, as one sentence; empty when it was asked for."""

    profile: Profile
    note: str


def profiles_folder() -> Path:
    """The folder of the user's calibrations: `$TOKROOF_HOME/profiles`, else `~/.tokroof/...`."""
    home = os.environ.get("TOKROOF_HOME")
    return (Path(home) if home else Path.home() / ".tokroof") / "profiles"


def own_profiles() -> dict[str, Path]:
    """The user's calibrations by name, the latest first."""
    # A link that leads nowhere is no file.
    files = [path for path in profiles_folder().glob("*.json") if path.is_file()]
    files.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    return {path.stem: path for path in files}


def machine_names() -> list[str]:
    """Every name `--machine` takes, once, own calibrations first."""
    return list(dict.fromkeys([*own_profiles(), *packaged_profile_names()]))


def choose_profile(spec: str | None) -> Choice:
    """The profile that `--machine` names, or the default.

    A spec is a name, or a path (it ends in .json or holds a separator). Without one it is the
    latest calibration of this user, else the packaged M3 with a note that says so.

    Raises:
        InputError: no such name or file, or a file that is not a profile.
    """
    own = own_profiles()
    if spec is None:
        if own:
            name, path = next(iter(own.items()))
            return Choice(profile=_own(path), note=f"machine: last calibration, {name}")
        return Choice(
            profile=named_profile(DEFAULT_MACHINE),
            note=f"machine: {DEFAULT_MACHINE}, as this one was never calibrated "
            "(`tokroof calibrate` does)",
        )
    if spec.endswith(".json") or os.sep in spec:
        return Choice(profile=_own(Path(spec)), note="")
    return Choice(profile=named_profile(spec), note="")


def named_profile(name: str) -> Profile:
    """The profile of that name, case-insensitive; the user's own hides a packaged one.

    Raises:
        InputError: there is none; the nearest names are told.
    """
    wanted = name.lower()
    for own, path in own_profiles().items():
        if own.lower() == wanted:
            return _own(path)
    for packaged in packaged_profile_names():
        if packaged.lower() == wanted:
            return _packaged(packaged)
    raise unknown_name("machine", name, machine_names())


@lru_cache(maxsize=16)
def _packaged(name: str) -> Profile:
    """A packaged profile, read once: prices are kept by machine, and one machine is one object."""
    return profile_from_json(packaged_profile_text(name), f"packaged profile {name}")


def _own(path: Path) -> Profile:
    """A profile file, read again only when it has changed."""
    try:
        found = path.stat()
    except (OSError, ValueError):  # what is wrong is said by reading it
        return read_profile(path)
    return _read(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=16)
def _read(path: Path, _changed_ns: int, _size_bytes: int) -> Profile:
    return read_profile(path)


def check_profile_name(name: str) -> str:
    """A name that is safe as a file name.

    Raises:
        InputError: it is empty, too long, or has other characters than letters, digits, . - _
    """
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    if not name or len(name) > 80 or not plain.isalnum() or name.startswith("."):
        raise InputError(f"name {name!r}", "cannot name a file", "use letters, digits, . - and _")
    return name
