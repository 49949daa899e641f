"""A palette that any eye can tell apart."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dashboard import theme
from dashboard.rows.strategies import MEANING
from model.strategies.base import BOUND_OF_PART


def test_every_part_has_a_colour_and_a_meaning() -> None:
    assert set(theme.PART_COLOURS) == set(MEANING) > set(BOUND_OF_PART)


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
@pytest.mark.parametrize(
    "palette",
    [
        theme.STRATEGY_COLOURS,
        theme.PART_COLOURS,
        {colour: colour for colour in theme.SERIES_COLOURS},
        {colour: colour for colour in theme.MEMORY_COLOURS},
        {colour: colour for colour in theme.SPEEDUP_COLOURS},
    ],
)
def test_any_eye_can_tell_the_colours_apart(eye: str, palette: dict[str, str]) -> None:
    for a, b in combinations(palette, 2):
        distance = float(np.linalg.norm(lab(palette[a], eye) - lab(palette[b], eye)))
        assert distance > 10.0, f"{a} and {b}"
