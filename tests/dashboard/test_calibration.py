"""The calibration view shows what a profile holds, and what its fit left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import tokroof
from dashboard.figure import literally
from dashboard.figures.calibration import (
    CalibrationSettings,
    calibration,
    drift_over_time,
    sample_residuals,
)
from dashboard.selection import Selection
from dashboard.uploads import kept_profile
from model.catalog import packaged_profile_text
from model.errors import InputError
from model.machine.profile_store import DEFAULT_MACHINE, choose_profile

APP = str(Path(__file__).parent.parent.parent / "dashboard" / "app.py")
H200 = Selection(machine="h200-mlx-0.32.4")
M4 = "m4-pro-20core-mlx-0.32"


def test_constants_and_ratios_are_the_command_line_s(capsys: pytest.CaptureFixture[str]) -> None:
    figure = calibration(H200, CalibrationSettings(against=M4))
    words = figure.command.text.split()[1:]
    assert tokroof.main([*words, "--json"]) == 0
    [document] = json.loads(capsys.readouterr().out)
    own = [row for row in figure.rows if row.profile == document["name"]]
    assert {row.label: row.value for row in own} == {
        name: stated["value"] for name, stated in document["constants"].items()
    }
    others = [row for row in figure.rows if row.profile == f"against {M4}"]
    assert document["against"] == M4
    assert {row.label for row in others if row.value > 0} == set(document["ratios"])
    for row in others:
        if row.relative and row.value > 0:
            assert 1.0 / row.relative == pytest.approx(document["ratios"][row.label])


def test_an_interval_holds_its_value() -> None:
    for row in calibration(H200, CalibrationSettings(against=M4)).rows:
        if row.relative is not None:
            assert row.low <= row.relative <= row.high


def test_a_profile_does_not_differ_from_itself() -> None:
    figure = calibration(Selection(), CalibrationSettings(against=DEFAULT_MACHINE))
    assert "No constant differs" in figure.sentence


def test_a_prior_keeps_no_samples_and_says_so() -> None:
    assert "It keeps no samples" in calibration(Selection(), CalibrationSettings()).sentence
    assert sample_residuals(Selection()) is None
    assert drift_over_time(Selection()) is None


def test_a_profile_of_published_runs_says_how_many() -> None:
    figure = calibration(Selection(machine=M4), CalibrationSettings())
    count = len(choose_profile(M4).profile.samples)
    assert f"fitted to {count} published runs" in figure.sentence
    assert sample_residuals(Selection(machine=M4)) is None


def test_what_spoils_a_calibration_is_said() -> None:
    cautions = calibration(H200, CalibrationSettings()).cautions
    assert any("drifted by" in each for each in cautions)
    assert any("did not take twice the time" in each for each in cautions)


def test_an_uploaded_profile_can_be_looked_at() -> None:
    document = json.loads(packaged_profile_text(M4)) | {"name": "mine"}
    path = kept_profile(json.dumps(document).encode(), "mine.json")
    figure = calibration(Selection(machine=str(path)), CalibrationSettings(against=str(path)))
    assert figure.where.startswith("mine: ")


def test_samples_that_cannot_be_read_are_one_message() -> None:
    document = json.loads(packaged_profile_text(DEFAULT_MACHINE)) | {"name": "mine"}
    document["samples"] = [{"probe": "linear", "seconds": "fast"}]
    path = kept_profile(json.dumps(document).encode(), "mine.json")
    with pytest.raises(InputError, match=r"profile mine: samples\[0\]"):
        calibration(Selection(machine=str(path)), CalibrationSettings())


def opened(**settings: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for key, value in settings.items():
        app.query_params[key] = value
    return app.run().switch_page("views/calibration.py").run()


def test_the_view_shows_constants_residuals_and_drift() -> None:
    app = opened(machine="h200-mlx-0.32.4", against="nobody")
    assert not app.exception
    assert not app.error
    assert app.header[0].value.startswith("Calibration")
    assert len(app.get("vega_lite_chart")) == 3


def test_a_profile_without_samples_shows_its_constants_alone() -> None:
    app = opened(target="llama-3.1-70b", against=M4)
    assert not app.exception
    assert not app.error
    assert literally(M4) in app.markdown[0].value
    assert len(app.get("vega_lite_chart")) == 1
