"""The machine that stands for a run's: by chip, cores, memory and runtime."""

from __future__ import annotations

import pytest

from calibrate.published.chips import Chip, chip_of
from calibrate.published.profiles import Basis, RunMachine, basis_of, profile_for, profiles_of
from calibrate.published.refusal import Reason, Refusal
from model.errors import InputError
from model.machine.kernels.releases import priced_release
from model.machine.profile import Profile
from model.machine.profile_store import named_profile
from tests.calibrate.published.published_run import PLAIN, SPECULATIVE, published


def found(**changed: str) -> RunMachine:
    machine = profile_for(published(SPECULATIVE | changed))
    assert isinstance(machine, RunMachine), str(machine)
    return machine


def test_a_run_has_its_own_chip_and_memory() -> None:
    header = found(memory_gb="24").profile.header
    assert header.gpu is not None
    assert (header.gpu.generation, header.gpu.size, header.gpu.cores) == (15, "g", 10)
    assert header.memory_bytes == 24 * 2**30
    # 19.07 GB is what a 24 GB Mac reports under macOS 26.
    assert header.recommended_working_set_bytes == pytest.approx(19.07e9, rel=0.01)


def test_the_other_series_of_mlx_is_the_same_machine_with_other_kernels() -> None:
    new, old = found().profile, found(runtime_version="mlx 0.31.1").profile
    assert priced_release(old.header.runtime) != priced_release(new.header.runtime)
    assert old.header.gpu == new.header.gpu
    with_rows = [law.regimes for law in new.header.laws]
    assert with_rows != [law.regimes for law in old.header.laws]


def test_nothing_packaged_asks_the_data_sheet_and_then_refuses() -> None:
    asked: list[tuple[str, str]] = []

    def scaled(chip: Chip, family: str) -> Profile:
        asked.append((chip.label, family))
        return named_profile("m3-10core-16gb")

    run = published(PLAIN | {"chip": "M6", "gpu_cores": "12", "memory_gb": ""})
    machine = profile_for(run, scaled)
    assert isinstance(machine, RunMachine)
    assert machine.basis is Basis.DATA_SHEET
    assert asked == [("M6 12-core", "mlx-0.32")]
    alone = profile_for(run)
    assert isinstance(alone, Refusal)
    assert alone.reason is Reason.NO_PROFILE
    assert "M6 12-core under mlx-0.32" in alone.text


def test_a_data_sheet_that_is_refused_is_no_profile() -> None:
    def scaled(chip: Chip, family: str) -> Profile:
        raise InputError(chip.label, "is not one of Apple's", f"not under {family}")

    machine = profile_for(published(chip="DGX Spark (GB10)", gpu_cores=""), scaled)
    assert isinstance(machine, Refusal)
    assert machine.reason is Reason.NO_PROFILE


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"chip": "M3 Ultra Max"}, Reason.UNKNOWN_CHIP),
        ({"runtime": "vLLM 0.25.1"}, Reason.UNKNOWN_RUNTIME),
        ({"runtime": "mlxcel (MLX CUDA)"}, Reason.NO_PROFILE),
    ],
)
def test_why_there_is_no_machine(changed: dict[str, str], reason: Reason) -> None:
    machine = profile_for(published(SPECULATIVE | changed))
    assert isinstance(machine, Refusal)
    assert machine.reason is reason


def test_a_chip_has_its_own_profiles_alone() -> None:
    chip = chip_of(published())
    assert isinstance(chip, Chip)
    assert {each.header.gpu.generation for each in profiles_of(chip) if each.header.gpu} == {15}
    assert {each.header.gpu.size for each in profiles_of(chip) if each.header.gpu} == {"g"}


def test_priors_are_a_data_sheet_and_samples_are_a_calibration() -> None:
    assert basis_of(named_profile("m3-10core-16gb")) is Basis.DATA_SHEET
    assert basis_of(named_profile("h200-mlx-0.32.4")) is Basis.CALIBRATED
