"""Held out by whole groups: the fit that predicts a run has seen nothing of its group."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from calibrate.published.chips import Chip
from calibrate.published.profiles import RunMachine
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.validation.held_out import GROUPS, HeldOut
from model.errors import InputError
from model.machine.profile import Profile
from model.machine.profile_store import named_profile
from tests.calibrate.published.published_run import PLAIN, published

CELLS = (
    {"id": "A", "chip": "M3", "target_model": "Llama-3.1-8B-Instruct", "source_url_or_repo": "x"},
    {"id": "B", "chip": "M3", "target_model": "Llama 3.1 8B Instruct", "source_url_or_repo": "y"},
    {"id": "C", "chip": "M3", "target_model": "Qwen3-8B", "source_url_or_repo": "x"},
    {"id": "D", "chip": "M4", "target_model": "Qwen3-8B", "source_url_or_repo": "y"},
)
RUNS = tuple(published(PLAIN | cells) for cells in CELLS)


class RecordedFit:
    """A fit that keeps what it was given."""

    def __init__(self) -> None:
        self.calls: list[tuple[set[str], str, str]] = []

    def __call__(self, rows: Sequence[PublishedRun], chip: Chip, runtime: str) -> Profile:
        self.calls.append(({row.id for row in rows}, chip.label, runtime))
        return named_profile("m3-10core-16gb")


@pytest.mark.parametrize(
    ("by", "seen"),
    [
        ("model", "CD"),  # both spellings of the first run's model are gone
        ("chip", "D"),
        ("study", "BD"),
    ],
)
def test_the_fit_sees_nothing_of_the_group(by: str, seen: str) -> None:
    fit = RecordedFit()
    machine = HeldOut(RUNS, by, fit)(RUNS[0])
    assert isinstance(machine, RunMachine)
    assert fit.calls == [(set(seen), "M3 10-core", "mlx-0.32")]


def test_runs_that_may_share_a_fit_share_it() -> None:
    fit = RecordedFit()
    machine_for = HeldOut(RUNS, "model", fit)
    assert machine_for(RUNS[0]) == machine_for(RUNS[1])
    machine_for(RUNS[2])
    machine_for(RUNS[3])
    assert [chip for _, chip, _ in fit.calls] == ["M3 10-core", "M3 10-core", "M4 10-core"]


def test_a_run_keeps_its_own_memory() -> None:
    machine = HeldOut(RUNS, "chip", RecordedFit())(published(PLAIN, memory_gb="8"))
    assert isinstance(machine, RunMachine)
    assert machine.profile.header.memory_bytes == 8 * 2**30


def test_a_fit_that_cannot_be_made_is_a_refusal() -> None:
    def impossible(rows: Sequence[PublishedRun], chip: Chip, runtime: str) -> Profile:
        raise InputError(f"{chip.label} under {runtime}", f"has {len(rows)} rows", "give more")

    found = HeldOut(RUNS, "study", impossible)(RUNS[0])
    assert isinstance(found, Refusal)
    assert found.reason is Reason.NO_PROFILE


@pytest.mark.parametrize(
    ("changed", "reason"),
    [({"chip": "M9"}, Reason.UNKNOWN_CHIP), ({"runtime": "vLLM"}, Reason.UNKNOWN_RUNTIME)],
)
def test_what_has_no_machine_is_refused_before_any_fit(
    changed: dict[str, str], reason: Reason
) -> None:
    fit = RecordedFit()
    found = HeldOut(RUNS, "model", fit)(published(PLAIN | changed))
    assert isinstance(found, Refusal)
    assert found.reason is reason
    assert not fit.calls


def test_a_random_row_is_no_group() -> None:
    with pytest.raises(InputError, match="--held-out row: is no group of runs; one of model, chip"):
        HeldOut(RUNS, "row", RecordedFit())
    assert set(GROUPS) == {"model", "chip", "study"}
