"""Every figure is a valid picture of its own rows, with units, words, and a command that works."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import asdict

import altair as alt
import pytest

import tokroof
from dashboard.figure import Figure, plainly
from dashboard.figures.bottleneck import bottleneck
from dashboard.figures.break_even import BreakEvenSettings, break_even
from dashboard.figures.calibration import (
    CalibrationSettings,
    calibration,
    drift_over_time,
    sample_residuals,
)
from dashboard.figures.context import context_memory, context_speed
from dashboard.figures.diffusion import DiffusionSettings, diffusion
from dashboard.figures.evidence import EvidenceSettings, errors, evidence
from dashboard.figures.layer_skip import SkipSettings, layer_skip
from dashboard.figures.roofline import roofline_figure
from dashboard.figures.row_costs import RowSettings, row_costs
from dashboard.figures.which_trick import which_trick
from dashboard.selection import Selection
from tests.dashboard.drawn import encodings


def shown(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


UNIT = re.compile(r" \([^()]+\)$")

MEASURED = Selection(machine="h200-mlx-0.32.4")
LLADA = Selection(target="llada2.0-mini", draft="")
FIGURES: dict[str, Callable[[], Figure]] = {
    "which-trick": lambda: which_trick(Selection()),
    "which-trick, no draft": lambda: which_trick(Selection(draft="")),
    "which-trick, draft too large": lambda: which_trick(
        Selection(target="qwen3-14b", draft="qwen3-8b")
    ),
    "bottleneck": lambda: bottleneck(Selection()),
    "evidence": lambda: evidence(
        Selection(), EvidenceSettings(where=(("chip", "M3 Ultra 60-core"),))
    ),
    "evidence, nothing predicted": lambda: evidence(
        Selection(), EvidenceSettings(quantity="speedup", where=(("strategy", "ngram"),))
    ),
    "errors by group": lambda: errors(
        Selection(), EvidenceSettings(where=(("runtime", "mlx-0.31"),), by="model")
    ),
    "layer-skip": lambda: layer_skip(Selection(), SkipSettings()),
    "layer-skip, measured": lambda: layer_skip(
        Selection(target="qwen3-4b"), SkipSettings(shown="speedup", measured="0.25=0.7,0.5=0.06")
    ),
    "diffusion": lambda: diffusion(LLADA, DiffusionSettings()),
    "diffusion, cached, a rival": lambda: diffusion(
        LLADA, DiffusionSettings(block=8, cached=True, rival="qwen3-1.7b")
    ),
    "calibration": lambda: calibration(Selection(), CalibrationSettings()),
    "calibration, compared": lambda: calibration(
        MEASURED, CalibrationSettings(against="m4-pro-20core-mlx-0.32")
    ),
    "residuals": lambda: shown(sample_residuals(MEASURED)),
    "drift": lambda: shown(drift_over_time(MEASURED)),
    "bottleneck, published": lambda: bottleneck(
        Selection(target="qwen3-8b", draft="", task="code", context=4096)
    ),
    "break-even": lambda: break_even(Selection(), BreakEvenSettings(longest=8, spread=0.05)),
    "break-even, published": lambda: break_even(
        Selection(acceptance="", task="mixed"), BreakEvenSettings(longest=4)
    ),
    "break-even, unknown": lambda: break_even(
        Selection(acceptance="", target_format="bf16", memory=64), BreakEvenSettings(longest=4)
    ),
    "row-costs": lambda: row_costs(Selection(), RowSettings(most=16)),
    "row-costs, measured": lambda: row_costs(
        Selection(machine="m3-max-40core-mlx-0.32"),
        RowSettings(formats=("8bit", "bf16"), runtimes=("mlx-0.30",)),
    ),
    "roofline": lambda: roofline_figure(Selection()),
    "roofline, no bandwidth": lambda: roofline_figure(
        Selection(machine="h200-mlx-0.32.4", draft="", target_format="8bit")
    ),
    "context-speed": lambda: context_speed(Selection()),
    "context-speed, too large": lambda: context_speed(Selection(target="llama-3.1-70b")),
    "context-memory": lambda: context_memory(Selection()),
    "context-memory, all fits": lambda: context_memory(
        Selection(machine="h200-mlx-0.32.4", draft="")
    ),
}
"""Each figure as a few selections make it."""


@pytest.fixture(params=FIGURES)
def figure(request: pytest.FixtureRequest) -> Figure:
    return FIGURES[request.param]()


def test_a_chart_is_valid_and_draws_what_its_rows_hold(figure: Figure) -> None:
    if figure.chart is None:
        pytest.skip("nothing to draw")
    spec = figure.chart.to_dict()
    assert alt.Chart.from_json(json.dumps(spec)).to_dict() == spec
    drawn = list(encodings(spec))
    assert drawn
    assert any(rows for _, _, rows in drawn)
    for channel, encoding, rows in drawn:
        # A layer may have nothing to draw here, as where no acceptance is had.
        assert not rows or any(encoding["field"] in row for row in rows), encoding
        if encoding.get("type") == "quantitative" and encoding.get("title"):
            assert UNIT.search(encoding["title"]), (channel, encoding)
    titled = {channel for channel, encoding, _ in drawn if encoding.get("title")}
    assert {"x", "y"} & titled


def test_the_answer_is_said_in_words_for_who_cannot_see_the_picture(figure: Figure) -> None:
    assert figure.sentence
    assert figure.chart is None or len(figure.alternative) > 20
    assert "nan" not in f"{figure.sentence} {figure.alternative}".lower().split()
    assert "None" not in f"{figure.sentence} {figure.alternative}".split()


def test_the_data_can_be_taken_along(figure: Figure) -> None:
    read = list(csv.DictReader(io.StringIO(figure.as_csv())))
    assert len(read) == len(figure.rows)
    document = json.loads(figure.as_json())
    assert document["sentence"] == plainly(figure.sentence)
    assert document["rows"] == json.loads(json.dumps([asdict(row) for row in figure.rows]))


def test_the_command_is_one_that_runs(figure: Figure, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = shlex.split(figure.command.text)
    assert program == "tokroof"
    assert tokroof.main(words) == 0, capsys.readouterr().err


def test_a_picture_can_be_kept() -> None:
    figure = which_trick(Selection())
    assert figure.as_svg().startswith("<svg")
    assert figure.as_png().startswith(b"\x89PNG")
