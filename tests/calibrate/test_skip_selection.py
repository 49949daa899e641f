"""Sets of sublayers that save as much as the middle layers and change the hidden state least."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.skip_selection import least_changing, write_factors
from model.catalog import packaged_profile_text
from model.errors import InputError
from model.machine.machine import Machine
from model.machine.profile_file import profile_from_json
from model.network.sublayers import Half, Sublayer, middle_block, sublayers
from model.network.target import load_target
from model.planners.factors_file import read_factors
from model.planners.sublayers import sublayer_times

TARGET = load_target("qwen3-4b", "4bit")
ALIKE = dict.fromkeys(sublayers(TARGET.architecture), 0.9)


@pytest.fixture(scope="module")
def m3() -> Machine:
    return profile_from_json(packaged_profile_text("m3-10core-16gb"), "m3").machine


def test_it_saves_what_the_middle_layers_save(m3: Machine) -> None:
    times = sublayer_times(TARGET, m3, context=512.0)
    for fraction in (0.125, 0.25, 0.5):
        middle = middle_block(TARGET.architecture, fraction)
        chosen = least_changing(TARGET, m3, ALIKE, fraction=fraction, context=512.0)
        saved_s = sum(times[each] for each in chosen)
        assert saved_s >= sum(times[each] for each in middle) * (1 - 1e-9)
        # Alike as they are, the fewest sublayers lose least: the dearest ones.
        assert len(chosen) <= len(middle)


def test_what_changes_little_goes_first(m3: Machine) -> None:
    still = frozenset(Sublayer(layer=layer, half=half) for layer in (3, 17, 29) for half in Half)
    similarity = ALIKE | dict.fromkeys(still, 0.999)
    fraction = 3 / len(TARGET.architecture.layers)
    chosen = least_changing(TARGET, m3, similarity, fraction=fraction, context=512.0)
    assert chosen == still


def test_more_than_was_measured(m3: Machine) -> None:
    few = dict(list(ALIKE.items())[:4])
    with pytest.raises(InputError, match=r"skip fraction 0.5: saves more than the measured"):
        least_changing(TARGET, m3, few, fraction=0.5, context=512.0)


def test_factors_are_what_the_planner_reads(tmp_path: Path) -> None:
    file = tmp_path / "factors.json"
    write_factors(file, ALIKE)
    assert read_factors(file) == ALIKE
