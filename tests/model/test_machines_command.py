"""The list of machines: what it shows, and that it says of a profile what the profile says."""

from __future__ import annotations

import json

import pytest

import tokroof
from model.catalog import packaged_profile_names
from model.commands.machines import entry_of, packaged_entry
from model.machine.constant import Origin
from model.machine.profile_store import named_profile


@pytest.mark.parametrize("name", packaged_profile_names())
def test_a_quick_entry_is_that_of_the_whole_profile(name: str) -> None:
    assert packaged_entry(name) == entry_of(named_profile(name))


def test_the_list_tells_fitted_machines_from_scaled_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tokroof.main(["machines"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "chip", "runtime", "origin", "n", "error"]
    fitted = next(line for line in lines if line.startswith("m4-max-40core-mlx-0.32"))
    scaled = next(line for line in lines if line.startswith("m4-max-32core-mlx-0.32"))
    assert " published " in fitted
    assert " spec sheet " in scaled
    assert scaled.split()[-3] == "0"


def test_json_keeps_the_weakest_origin_and_adds_that_of_a_pass(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tokroof.main(["machines", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert set(listed) >= set(packaged_profile_names())
    fitted = listed["m4-max-40core-mlx-0.32"]
    assert fitted["origin"] == Origin.PRIOR.label
    assert fitted["pass_origin"] == Origin.PUBLISHED.label
    assert 0.0 < fitted["residual_log"] < 0.2
    assert fitted["n_samples"] > 0
