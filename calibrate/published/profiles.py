"""The machine that stands for the one a published run was measured on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias, final

from calibrate.published.chips import Chip
from calibrate.published.names import chip_of, runtime_family
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.published.runtimes import MLX_FAMILIES, split_family
from model.catalog import packaged_profile_names, packaged_profile_text
from model.errors import InputError
from model.machine.constant import Origin
from model.machine.kernels.runtime_change import as_runtime
from model.machine.profile import Profile
from model.machine.profile_file import profile_from_json
from model.machine.working_set import NEWER_LIMITS, recommended_bytes

Scaled: TypeAlias = Callable[[Chip, str], Profile]
"""A profile of a chip under a runtime family from its data sheet; refused by an InputError."""


@final
class Basis(StrEnum):
    """What a profile rests on."""

    CALIBRATED = "calibrated chip"
    """Measurements of the chip, one's own or published."""
    DATA_SHEET = "data sheet"
    """Figures of the chip and of its relatives alone."""
    CHOSEN = "chosen machine"
    """Whatever `--machine` named."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunMachine:
    """The profile that a run is predicted with."""

    profile: Profile
    basis: Basis


def profile_for(run: PublishedRun, scaled: Scaled | None = None) -> RunMachine | Refusal:
    """The packaged profile of a run's chip, cores and runtime with the run's memory.

    Under the other series of MLX a profile is turned by the tables of its kernels. Where nothing
    is packaged, `scaled` is asked for a profile from the data sheet. A run that leaves its cores
    open takes the profile with the most.
    """
    chip, family = chip_of(run), runtime_family(run)
    if isinstance(chip, Refusal):
        return chip
    if isinstance(family, Refusal):
        return family
    found = _packaged(chip, family) or _scaled(chip, family, scaled)
    if found is None:
        text = f"{chip.label} under {family}"
        return Refusal(reason=Reason.NO_PROFILE, text=text)
    memory = run.memory_bytes
    profile = found if memory is None else with_memory(found, int(memory))
    return RunMachine(profile=profile, basis=basis_of(profile))


@lru_cache(maxsize=512)
def with_memory(profile: Profile, memory_bytes: int) -> Profile:
    """The same machine with other memory, of which a Mac's usual share may stay resident.

    The larger share of newer releases of macOS is taken: what was published did run.
    """
    header = profile.header
    limit = None
    if header.device == "metal":
        limit = int(recommended_bytes(memory_bytes, macos=NEWER_LIMITS))
    changed = replace(header, memory_bytes=memory_bytes, recommended_working_set_bytes=limit)
    return replace(profile, header=changed)


def basis_of(profile: Profile) -> Basis:
    """Measurements, if any constant rests on one of the chip itself."""
    strongest = min(constant.origin for constant in profile.constants.values())
    fitted = bool(profile.samples) or strongest is Origin.MEASURED
    return Basis.CALIBRATED if fitted else Basis.DATA_SHEET


@lru_cache(maxsize=512)
def fitted_to(profile: Profile) -> frozenset[str]:
    """The ids of the published runs that a profile was fitted to."""
    return frozenset(str(sample["id"]) for sample in profile.samples if "id" in sample)


@lru_cache(maxsize=512)
def _packaged(chip: Chip, family: str) -> Profile | None:
    own = [each for each in profiles_of(chip) if _as_family(each, family) is not None]
    if not own:
        return None
    cores = max(_cores(each) for each in own)
    if chip.cores_stated and chip.gpu is not None:
        cores = chip.gpu.cores
    own = [each for each in own if _cores(each) == cores]
    # Fitted before prior, and of this very runtime before one of the other series.
    own.sort(
        key=lambda each: (
            bool(each.samples),
            each.header.runtime.startswith(split_family(family)[0]),
        )
    )
    return _as_family(own[-1], family) if own else None


def _as_family(profile: Profile, family: str) -> Profile | None:
    """The profile under a family of runtimes; None where nothing says what changes."""
    runtime = profile.header.runtime
    family, back_end = split_family(family)
    if back_end != profile.header.device:
        return None
    if runtime.startswith(family):
        return profile
    if family not in MLX_FAMILIES or not runtime.startswith("mlx-"):
        return None
    try:
        return as_runtime(profile, family)
    except InputError:
        return None


@lru_cache(maxsize=512)
def _scaled(chip: Chip, family: str, scaled: Scaled | None) -> Profile | None:
    if scaled is None:
        return None
    try:
        return scaled(chip, family)
    except InputError:
        return None


@lru_cache(maxsize=128)
def profiles_of(chip: Chip) -> tuple[Profile, ...]:
    """The packaged profiles of a chip, whatever its cores; their files are named after it."""
    start = chip.file_name + "-"
    named = [name for name in packaged_profile_names() if name.startswith(start)]
    found = [_packaged_profile(name) for name in named]
    return tuple(each for each in found if _is_of(each, chip))


@lru_cache(maxsize=128)
def _packaged_profile(name: str) -> Profile:
    """A packaged profile, read once for every variant of its chip that asks."""
    return profile_from_json(packaged_profile_text(name), f"packaged profile {name}")


def _is_of(profile: Profile, chip: Chip) -> bool:
    """Whether a profile is of this chip; "Apple M3, 10-core GPU" is of M3."""
    named = profile.header.chip.partition(",")[0].removeprefix("Apple ").strip()
    return named.lower() == chip.name.lower()


def _cores(profile: Profile) -> int:
    return 0 if profile.header.gpu is None else profile.header.gpu.cores
