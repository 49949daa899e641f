"""Charts say what their rows say: every field is there, every quantity has a unit, parts add up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any, cast

import altair as alt
import numpy as np
import pytest

from dashboard import charts, present, theme
from dashboard.answers import DRAFT_LENGTHS, Answer, Selection, answer
from model.cost.forward import Bound
from model.strategies.base import BOUND_OF_PART


@pytest.fixture(autouse=True)
def no_own_calibration(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path))


def chart_of(name: str, found: Answer) -> alt.LayerChart:
    totals = present.total_rows(found.fitting)
    if name == "speeds":
        return charts.speeds(present.speed_rows(found.fitting))
    return charts.token_times(present.part_rows(found.fitting), totals)


def encodings(spec: Any) -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """Every channel that draws a field, with the rows that the field must be in."""
    for layer in spec["layer"]:
        rows = spec["datasets"][layer["data"]["name"]]
        for channel, drawn in layer["encoding"].items():
            several = cast("list[dict[str, Any]]", drawn if isinstance(drawn, list) else [drawn])
            yield from ((channel, each, rows) for each in several if "field" in each)


@pytest.mark.parametrize("name", ["speeds", "token_times"])
@pytest.mark.parametrize("draft", ["llama-3.2-1b", "llama-3.1-8b"])  # the second does not fit
def test_a_chart_is_valid_and_draws_what_its_rows_hold(name: str, draft: str) -> None:
    target = "llama-3.1-8b" if draft == "llama-3.2-1b" else "deepseek-r1-distill-llama-8b"
    found = answer(Selection(target=target, draft=draft, draft_format="8bit", context=2048))
    assert (found.best is None) == (draft == "llama-3.1-8b")
    spec = chart_of(name, found).to_dict()
    assert alt.LayerChart.from_json(json.dumps(spec)).to_dict() == spec
    drawn = list(encodings(spec))
    for channel, encoding, rows in drawn:
        assert rows
        assert all(encoding["field"] in row for row in rows), encoding
        if encoding.get("type") == "quantitative":
            assert encoding["title"].endswith((" (tok/s)", " (ms)")), (channel, encoding)
    titles = {encoding["title"] for channel, encoding, _ in drawn if channel == "x"}
    assert len(titles) == 1


def test_the_parts_of_a_token_sum_to_its_time_which_is_the_inverse_of_its_speed() -> None:
    found = answer(Selection(acceptance=0.8, context=4096))
    assert len(found.fitting) == 1 + len(DRAFT_LENGTHS)
    parts, totals = present.part_rows(found.fitting), present.total_rows(found.fitting)
    speeds = present.speed_rows(found.fitting)
    for total, speed in zip(totals, speeds, strict=True):
        assert total.label == speed.label
        summed_ms = sum(row.time_ms for row in parts if row.label == total.label)
        assert summed_ms == pytest.approx(total.time_ms, rel=1e-12)
        assert 1e3 / summed_ms == pytest.approx(speed.tokens_per_s, rel=1e-12)
        assert speed.low_tokens_per_s < speed.tokens_per_s < speed.high_tokens_per_s


def test_the_sentences_state_the_numbers_of_the_answer() -> None:
    found = answer(Selection())
    best = max(found.speculative, key=lambda each: each.speedup or 0.0)
    said = present.which_trick(found)
    assert f"k = {best.settings['draft_length']}," in said
    assert f"{best.tokens_per_s:.1f} tok/s, {best.speedup:.2f} times" in said
    least = min(each for each in found.break_even if each is not None)
    assert f"The least acceptance that pays is {least:.2f}" in said
    assert f"{present.token_ms(found.plain):.1f} ms" in present.bottleneck(found)


def test_where_not_even_a_perfect_draft_pays_the_sentence_says_so() -> None:
    found = answer(Selection(target="llama-3.2-1b", draft="llama-3.1-8b", acceptance=1.0))
    assert set(found.break_even) == {None}
    assert present.which_trick(found).startswith("**Speculation does not pay**")
    assert "No acceptance wins" in present.which_trick(found)


def test_the_shares_of_a_token_are_those_of_its_parts() -> None:
    plain = answer(Selection()).plain
    spent_s = sum(s for part, s in plain.parts_s if BOUND_OF_PART[part] is Bound.MEMORY)
    first = present.shares(plain).split(", ")[0]
    assert first == f"reading memory {100 * spent_s / plain.round_s:.0f} %"


def test_every_part_has_a_colour() -> None:
    assert set(theme.PART_COLOURS) == set(BOUND_OF_PART)


# Machado, Oliveira and Fernandes 2009, severity 1: what each eye makes of linear RGB.
EYES = {
    "normal": (1, 0, 0, 0, 1, 0, 0, 0, 1),
    "protan": (
        *(0.152286, 1.052583, -0.204868),
        *(0.114503, 0.786281, 0.099216),
        *(-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        *(0.367322, 0.860646, -0.227968),
        *(0.280085, 0.672501, 0.047413),
        *(-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        *(1.255528, -0.076749, -0.178779),
        *(-0.078411, 0.930809, 0.147602),
        *(0.004733, 0.691367, 0.303900),
    ),
}


def lab(colour: str, eye: str) -> Any:
    """CIE L*a*b* (D65) of a colour as an eye sees it."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    linear = np.where(srgb > 0.04045, ((srgb + 0.055) / 1.055) ** 2.4, srgb / 12.92)
    seen = np.clip(np.reshape(EYES[eye], (3, 3)) @ linear, 0.0, 1.0)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.array(to_xyz) @ seen / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("palette", [theme.STRATEGY_COLOURS, theme.PART_COLOURS])
def test_any_eye_can_tell_the_colours_apart(eye: str, palette: dict[str, str]) -> None:
    for a, b in combinations(palette, 2):
        distance = float(np.linalg.norm(lab(palette[a], eye) - lab(palette[b], eye)))
        assert distance > 10.0, f"{a} and {b}"
