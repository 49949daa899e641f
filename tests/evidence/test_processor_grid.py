"""A profile of MLX's CPU back end against runs of every strategy that its fit has not seen.

Measured 2026-11-30 with MLX 0.32.4 on two cores of an AMD EPYC that did nothing else
(`calibrate/data/runs/NOTES.md`). Thresholds are what was reached, rounded up.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from calibrate.commands.validation_output import percent
from calibrate.comparison import Group, compare_runs, summarise
from calibrate.run_file import read_runs
from model.machine.profile_file import read_profile

DATA = Path(str(files("calibrate") / "data"))
README = Path(__file__).parents[2] / "README.md"
MEDIANS = {
    "tokens_per_s": (24, 0.025),
    "tokens_per_s, plain": (4, 0.042),
    "tokens_per_s, batch": (2, 0.012),
    "tokens_per_s, canvas": (4, 0.036),
    "tokens_per_s, layer-skip, forced": (6, 0.018),
    "speedup": (20, 0.012),
}
"""Comparisons of each group, and the median error reached."""


@pytest.fixture(scope="module")
def groups() -> dict[str, Group]:
    profile = read_profile(DATA / "profiles/epyc-mlx-0.32.4-cpu.json")
    runs = read_runs(DATA / "runs/epyc-2026-11-30-grid.jsonl")
    return {each.group: each for each in summarise(compare_runs(runs, profile))}


@pytest.mark.parametrize("name", MEDIANS)
def test_a_group_is_predicted_as_well_as_was_reached(groups: dict[str, Group], name: str) -> None:
    n, most = MEDIANS[name]
    found = groups[name]
    assert (found.n, found.refused) == (n, 0)
    assert found.median_error is not None
    assert 0.7 * most < found.median_error < most


def test_every_win_and_loss_is_told_right(groups: dict[str, Group]) -> None:
    assert groups["speedup"].sign_accuracy == 1.0


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("tokens_per_s", "| the same, every strategy (`tokroof run grid processor`) |"),
        ("speedup", "| speedup over plain decoding, the same runs |"),
    ],
)
def test_the_readme_says_what_validate_prints(
    groups: dict[str, Group], name: str, row: str
) -> None:
    found = groups[name]
    errors = f"{percent(found.median_error)} | {percent(found.p90_error)}"
    signs = f" {percent(found.sign_accuracy)} " if found.sign_accuracy is not None else " "
    assert f"{row} {found.n} | {errors} |{signs}|" in README.read_text(encoding="utf-8")
