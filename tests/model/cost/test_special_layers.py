"""What layers cost on top of plain ones: routed experts, recurrences, more norms than two."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.cost.forward import cacheless_pass
from model.machine.machine import Machine
from model.machine.profile_store import named_profile
from model.network.target import load_target

NO_EXTRAS = named_profile("m3-10core-16gb").machine


def with_extras(**seconds: float) -> Machine:
    return replace(NO_EXTRAS, device=replace(NO_EXTRAS.device, **seconds))


@pytest.mark.parametrize(
    ("model", "constant", "count"),
    [
        ("qwen3-30b-a3b", "experts_layer_s", 48),  # every layer
        ("deepseek-v2-lite", "experts_layer_s", 26),  # the first of 27 is dense
        ("llama-3.1-8b", "experts_layer_s", 0),
        ("qwen3.5-9b", "recurrent_layer_s", 24),  # three of each four of 32
        ("llama-3.1-8b", "recurrent_layer_s", 0),
        ("gemma-3-1b", "norm_s", 52),  # 26 layers with 4 norms each
        ("llama-3.1-8b", "norm_s", 0),
        ("qwen3-0.6b", "norm_s", 0),  # norms of single heads are not of the layer's width
        ("qwen3-0.6b", "head_norm_s", 56),  # of queries and of keys in 28 layers
        ("llama-3.1-8b", "head_norm_s", 0),
        ("qwen3.5-9b", "norm_s", 0),  # the weights of a convolution are no norms
    ],
)
@pytest.mark.parametrize("rows", [1, 4])
def test_an_extra_is_charged_to_the_layers_that_have_it(
    model: str, constant: str, count: int, rows: int
) -> None:
    checkpoint = load_target(model, "4bit")
    without = cacheless_pass(checkpoint, NO_EXTRAS, rows)
    extra = cacheless_pass(checkpoint, with_extras(**{constant: 1e-3}), rows)
    grown_s = float(extra.dispatch_s - without.dispatch_s)
    assert grown_s == pytest.approx(count * 1e-3, abs=1e-9)
    assert float(extra.device_s - without.device_s) == pytest.approx(grown_s, abs=1e-9)
    assert float(extra.lower_s - without.lower_s) == pytest.approx(grown_s, abs=1e-9)


def test_a_profile_without_these_constants_charges_nothing() -> None:
    device = NO_EXTRAS.device
    assert (device.experts_layer_s, device.recurrent_layer_s) == (0.0, 0.0)
    assert (device.norm_s, device.head_norm_s) == (0.0, 0.0)
    assert NO_EXTRAS.host.walk_share == 0.0
