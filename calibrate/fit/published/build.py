"""Write the shipped profiles of published runs anew from the shipped runs: `make profiles`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from calibrate.fit.published.held_out import held_out_rows
from calibrate.fit.published.profiles import NEWEST_MLX, profile_name, stated_profile
from calibrate.fit.published.timings import LLAMA_CPP
from calibrate.published.chips import Chip, chip_bins
from calibrate.published.evidence import shipped_runs
from model.machine.profile_file import write_profile

RUNTIMES = (NEWEST_MLX, LLAMA_CPP)
"""Older releases of MLX follow from the newest: `--runtime mlx-0.31`."""
CUDA_RUNTIMES = tuple(f"{runtime}-cuda" for runtime in RUNTIMES)
CUDA_CHIPS = ("dgx spark (gb10)",)
"""Chips of others that have been run with enough networks to be fitted, by themselves."""
GENERATIONS = range(13, 18)
"""M1 to M5, the chips that somebody published runs of."""


def shipped_chips() -> Iterator[Chip]:
    """Every Apple chip of these generations in each of its numbers of cores that is sold."""
    for bins in chip_bins().values():
        for chip in bins:
            gpu = chip.gpu
            if gpu is not None and gpu.generation in GENERATIONS and gpu.size != "p":
                yield chip


def shipped_profiles() -> Iterator[tuple[Chip, str]]:
    """Every chip and runtime that a profile is shipped for."""
    for chip in shipped_chips():
        yield from ((chip, runtime) for runtime in RUNTIMES)
    for name in CUDA_CHIPS:
        yield from ((chip, runtime) for chip in chip_bins()[name] for runtime in CUDA_RUNTIMES)


def build(folder: Path) -> int:
    """Write every profile into a folder; how many there are."""
    written = 0
    for chip, runtime in shipped_profiles():
        profile = stated_profile(shipped_runs(), chip, runtime)
        write_profile(profile, folder / f"{profile_name(chip, runtime)}.json")
        written += 1
    return written


if __name__ == "__main__":
    print(f"{build(Path(sys.argv[1]))} profiles")
    for runtime in (*RUNTIMES, *CUDA_RUNTIMES):
        for name, count, median, p90 in held_out_rows(runtime):
            print(f"{name}: {count} runs, median {100 * median:.1f} %, p90 {100 * p90:.1f} %")
