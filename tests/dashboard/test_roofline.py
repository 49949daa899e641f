"""The roofline view: the command's own numbers, and roofs that bend at the ridge."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import tokroof
from dashboard.figures.roofline import roofline_figure
from dashboard.rows.roofline import PATH, arrow_ends, roof_ends, strategy_rows
from dashboard.selection import Selection
from model.commands.roofline import add_arguments, roofline

APP = Path(__file__).parent.parent.parent / "dashboard" / "app.py"


def test_its_numbers_are_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    figure = roofline_figure(Selection())
    assert tokroof.main([*shlex.split(figure.command.text)[1:], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    points = [(each["intensity"], each["attained_flops_per_s"]) for each in document["points"]]
    path = [(each["intensity"], each["attained_flops_per_s"]) for each in document["path"]]
    drawn = [(row.flop_per_byte, row.flop_per_s) for row in figure.rows if row.label != PATH]
    walked = [(row.flop_per_byte, row.flop_per_s) for row in figure.rows if row.label == PATH]
    assert drawn == points
    assert walked == path
    plain = points[0][1] / 1e12
    assert f"held back by memory: it does {plain:.2f} TFLOP/s" in figure.sentence


def test_roofs_bend_where_bandwidth_and_arithmetic_meet_and_arrows_start_at_plain() -> None:
    call = Selection().predict().options(add_arguments)
    found = roofline(call)
    ends = roof_ends(found)
    first = [end for end in ends if end.kernel == "kernel for 1 to 12 rows"]
    assert len(first) == 3
    assert first[1].flop_per_s == pytest.approx(first[2].flop_per_s)
    assert first[0].flop_per_s < first[1].flop_per_s
    strategies = strategy_rows(found)
    arrows = arrow_ends(strategies)
    assert len(arrows) == 2 * (len(strategies) - 1)
    for start in arrows[::2]:
        assert start.flop_per_s == strategies[0].flop_per_s


@pytest.mark.parametrize(
    "settings", [{"acceptance": "0.8"}, {"machine": "h200-mlx-0.32.4", "draft": "none"}]
)
def test_the_view_opens_with_a_links_settings(settings: dict[str, str]) -> None:
    app = AppTest.from_file(str(APP), default_timeout=60)
    for key, value in settings.items():
        app.query_params[key] = value
    app.run().switch_page("views/roofline.py").run()
    assert not app.exception
    assert app.header[0].value.startswith("Roofline")
    [chart] = app.get("vega_lite_chart")
    assert chart.proto.alt == "Passes under their roofs"
