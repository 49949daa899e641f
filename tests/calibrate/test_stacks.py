"""Passes whose context grows: each meets a context of its own, over jobs and over sweeps."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import pytest

from calibrate import stacks
from calibrate.pass_questions import SEVERAL_ROWS
from calibrate.probe import Probe
from calibrate.probe_network import config_of
from calibrate.workloads import Workshop

PLANS_KEPT = 256
"""Attention plans that MLX's CUDA back end keeps."""

NARROW: dict[str, str | int] = {
    "hidden": 128,
    "intermediate": 128,
    "query_heads": 2,
    "kv_heads": 1,
    "head_dim": 64,
    "vocab": 64,
    "layers": 2,
}
CONFIG = config_of(NARROW)
CONTEXT = 20


class Recording:
    """A network that keeps what context each of its passes met."""

    def __init__(self, network: Any) -> None:
        self._network = network
        self.layers = network.layers
        self.args = network.args
        self.contexts: list[int] = []

    def __call__(self, tokens: mx.array, *, cache: list[Any]) -> mx.array:
        self.contexts.append(cache[0].offset)
        return self._network(tokens, cache=cache)


@pytest.fixture
def network() -> Recording:
    return Recording(stacks.random_model(CONFIG, "4bit"))


def passes(network: Recording, rows: int) -> stacks.Passes:
    return stacks.Passes(network, format_name="4bit-s32", rows=rows, context=CONTEXT)


@pytest.mark.parametrize("rows", [1, SEVERAL_ROWS[0]])
def test_each_pass_meets_the_context_that_the_last_one_left(network: Recording, rows: int) -> None:
    loop = stacks.Loop(passes(network, rows), "growing")
    for units in (1, 3, 2):
        loop.prepare(units)()
    assert network.contexts == [CONTEXT + rows * turn for turn in range(6)]


def test_awaited_passes_meet_the_same_context_again(network: Recording) -> None:
    loop = stacks.Loop(passes(network, SEVERAL_ROWS[0]), "awaited")
    for units in (1, 3):
        loop.prepare(units)()
    assert network.contexts == [CONTEXT] * 4


def test_a_context_that_has_grown_enough_starts_again(
    network: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "MOST_GROWTH", 5)
    loop = stacks.Loop(passes(network, SEVERAL_ROWS[0]), "growing")
    for _ in range(5):
        loop.prepare(1)()
    assert network.contexts == [20, 22, 24, 20, 22]


def test_by_then_every_plan_of_the_first_contexts_is_forgotten() -> None:
    """Passes start again once they are beyond the limit, so the one that exceeds it counts."""
    assert stacks.MOST_GROWTH // SEVERAL_ROWS[0] + 1 > PLANS_KEPT


def host_probe(mode: str, layers: int = 2) -> Probe:
    settings = {**NARROW, "layers": layers, "format": "4bit-s32"}
    material = f"network of {layers}"
    settings |= {"rows": SEVERAL_ROWS[0], "context": CONTEXT, "mode": mode}
    return Probe(
        probe="host",
        settings=tuple(settings.items()),
        material=material,
        unit_s=1e-3,
        make_s=0.1,
        memory_bytes=0,
    )


def test_a_later_sweep_goes_on_from_the_last_ones_context(
    network: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recorded(_config: object, _format_name: str) -> Recording:
        return network

    monkeypatch.setattr(stacks, "random_model", recorded)
    workshop = Workshop()
    for mode, layers in (("growing", 2), ("awaited", 24), ("growing", 2), ("awaited", 2)):
        workshop.workload(host_probe(mode, layers)).prepare(2)()
    assert network.contexts == [20, 22, 20, 20, 24, 26, 20, 20]
