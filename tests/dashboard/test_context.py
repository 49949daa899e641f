"""The view of contexts: the command's own numbers, for speed and for memory."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import tokroof
from dashboard.figures.context import context_memory, context_speed
from dashboard.selection import Selection
from model.units import GB

APP = Path(__file__).parent.parent.parent / "dashboard" / "app.py"


def printed(text: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert tokroof.main([*shlex.split(text)[1:], "--json"]) == 0
    return json.loads(capsys.readouterr().out)["strategies"]


def test_its_numbers_are_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    speed, memory = context_speed(Selection()), context_memory(Selection())
    strategies = printed(speed.command.text, capsys)
    fitting = [each for s in strategies for each in s["contexts"] if each["fits"]]
    assert [row.tokens_per_s for row in speed.rows] == [each["tokens_per_s"] for each in fitting]
    [shown] = [each for each in strategies if each["label"] == memory.rows[0].label]
    for each in shown["contexts"]:
        parts = [row.size_gb for row in memory.rows if row.context == each["context"]]
        assert sum(parts) == pytest.approx(each["working_set_bytes"] / GB)
    assert f"{shown['longest_context']:,} tokens of context fit" in memory.sentence


def test_more_memory_holds_more_context() -> None:
    small, large = context_memory(Selection()), context_memory(Selection(memory=24))
    assert small.rows[0].limit_gb < large.rows[0].limit_gb
    assert max(row.context for row in context_speed(Selection(memory=24)).rows) > max(
        row.context for row in context_speed(Selection()).rows
    )


def test_what_does_not_fit_has_no_speed_but_its_memory_is_drawn() -> None:
    large = Selection(target="llama-3.1-70b")
    speed, memory = context_speed(large), context_memory(large)
    assert speed.chart is None
    assert "Plain does not fit" in speed.sentence
    assert "does not fit" in memory.sentence
    assert memory.chart is not None


def test_the_view_opens_with_a_links_settings() -> None:
    app = AppTest.from_file(str(APP), default_timeout=60)
    app.query_params["acceptance"] = "0.8"
    app.run().switch_page("views/context.py").run()
    assert not app.exception
    assert app.header[0].value.startswith("Context and memory")
    assert len(app.get("vega_lite_chart")) == 2
    assert app.markdown[0].value == context_speed(Selection(acceptance="0.8")).sentence
