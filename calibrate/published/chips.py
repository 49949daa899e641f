"""Which chip a published run was measured on."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import final

from calibrate.published.evidence import chip_facts
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from model.machine.kernels.gpu import Gpu, gpu_of

_OF_APPLE = re.compile(r"\bM[1-9](?: ?(?:Pro|Max|Ultra))?\b", re.IGNORECASE)
_CORES = re.compile(r"(?i)\b(\d+)[ -]?(?:c\b|cores?(?: gpu)?\b|gpu[ -]cores?\b)")
_MEMORY = re.compile(r"(?i)\b\d+ ?gi?b\b")
NO_NAME = frozenset(("nvidia", "amd", "apple", "geforce", "gpu", "desktop", "edition"))
"""Words that a chip's name may have or not."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A chip in one of its numbers of cores; `gpu` is None where it is not Apple's.

    `cores` are those of the GPU, of NVIDIA's its multiprocessors; None where nobody says.
    `cores_stated` is False where a run leaves the number open and the largest that its memory and
    bandwidth allow was taken.
    """

    name: str
    gpu: Gpu | None
    cores: int | None
    nominal_bandwidth_bytes_per_s: float | None
    memory_options: tuple[int, ...]
    cores_stated: bool

    @property
    def label(self) -> str:
        """The chip and its cores, in a few words."""
        return self.name if self.gpu is None else f"{self.name} {self.gpu.cores}-core"

    @property
    def file_name(self) -> str:
        """How the names of its profiles begin, as m4-max or dgx-spark-gb10."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def chip_of(run: PublishedRun) -> Chip | Refusal:
    """The chip of a run, its number of cores included."""
    name = run.chip.removeprefix("Apple ").strip()
    bins = _bins_of(name)
    if not bins:
        return Refusal(reason=Reason.UNKNOWN_CHIP, text=run.chip or "not stated")
    cores = _cores_in(name) if run.gpu_cores is None else run.gpu_cores
    if cores is not None and bins[0].gpu is not None:
        for each in bins:
            if each.gpu is not None and each.gpu.cores == cores:
                return each
        return Refusal(reason=Reason.UNKNOWN_CHIP, text=f"{bins[0].name} with {cores} GPU cores")
    likely = [each for each in bins if _may_be(each, run)] or list(bins)
    return likely[0] if len(likely) == 1 else replace(likely[-1], cores_stated=False)


@lru_cache(maxsize=1024)
def _bins_of(name: str) -> tuple[Chip, ...]:
    """The shipped chips of a name: as it stands, else without maker and memory, in any order."""
    bins = chip_bins()
    if (found := bins.get(name.lower())) is not None:
        return found
    apple = {each.upper().replace(" ", "") for each in _OF_APPLE.findall(name)}
    if apple:
        # Two chips in one name are two machines, or a comparison.
        told = [key for key in bins if key.upper().replace(" ", "") in apple]
        return bins[told[0]] if len(apple) == len(told) == 1 else ()
    words = _words(name)
    alike = [key for key in bins if words and _words(key) == words]
    return bins[alike[0]] if len(alike) == 1 else ()


def _words(name: str) -> frozenset[str]:
    """The words of a chip's name that tell it from others."""
    without = _MEMORY.sub(" ", name.lower())
    return frozenset(re.findall(r"[a-z0-9]+", without)) - NO_NAME


def _cores_in(name: str) -> int | None:
    """The number of GPU cores in a chip's name; None without one, or where it may be the CPU's."""
    found = _CORES.findall(name)
    return int(found[0]) if len(found) == 1 and "cpu" not in name.lower() else None


def _may_be(chip: Chip, run: PublishedRun) -> bool:
    """Whether a chip of so many cores is sold with the run's memory and bandwidth."""
    memory, bandwidth = run.memory_bytes, run.nominal_bandwidth_bytes_per_s
    own = chip.nominal_bandwidth_bytes_per_s
    fits = memory is None or memory in chip.memory_options
    return fits and (bandwidth is None or own is None or abs(bandwidth / own - 1.0) < 0.05)


@cache
def chip_bins() -> dict[str, tuple[Chip, ...]]:
    """Shipped chips by name in lower case, each with its numbers of cores in rising order."""
    bins: dict[str, list[Chip]] = {}
    for facts in chip_facts():
        cores = int(facts["gpu_cores"]) if facts["gpu_cores"].isdigit() else None
        bandwidth = facts["nominal_bandwidth_bytes_per_s"]
        options = [each for each in facts["memory_options_bytes"].split("|") if each]
        chip = Chip(
            name=facts["chip"],
            gpu=gpu_of(facts["mlx_architecture"], cores),
            cores=cores,
            nominal_bandwidth_bytes_per_s=float(bandwidth) if bandwidth else None,
            memory_options=tuple(int(each) for each in options),
            cores_stated=True,
        )
        bins.setdefault(chip.name.lower(), []).append(chip)
    return {name: tuple(each) for name, each in bins.items()}
