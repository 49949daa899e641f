"""Filters leave the runs that have what was asked for, and say so where there are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tokroof
from calibrate.published.evidence import shipped_runs
from calibrate.validation.which_runs import FILTERS, chosen, read_where
from model.errors import InputError


@pytest.mark.parametrize("name", FILTERS)
def test_the_values_of_a_filter_part_the_runs(name: str) -> None:
    runs = shipped_runs()
    values = {FILTERS[name](run) for run in runs}
    parts = [list(chosen(runs, ((name, value),))) for value in values]
    assert len(values) > 1
    assert sorted(run.id for part in parts for run in part) == sorted(run.id for run in runs)


def test_all_filters_must_hold() -> None:
    found = list(chosen(shipped_runs(), (("strategy", "mtp"), ("trust", "high"))))
    assert found
    assert {(run.strategy, run.trust) for run in found} == {("mtp", "high")}


@pytest.mark.parametrize("text", ["trust", "colour=red", "=", ""])
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no filter of runs"):
        read_where([text])


def test_the_command_scores_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--where", "chip=M3 Pro 14-core", "--where", "strategy=plain")
    assert tokroof.main(["validate", *where, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["rows"]) == 2
    assert document["groups"][0]["n"] == 2


def test_nothing_left_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["validate", "--where", "chip=M9"]) == 2
    assert capsys.readouterr().err == "tokroof validate: chip=M9: leaves no run; ask for less\n"


def test_records_of_one_machine_take_no_filter(capsys: pytest.CaptureFixture[str]) -> None:
    runs = Path("calibrate/data/runs/h200-mlx-0.32.4.jsonl")
    assert tokroof.main(["validate", str(runs), "--where", "trust=high"]) == 2
    assert "is not for records of one machine" in capsys.readouterr().err
