"""mlx-vlm builds what the model counts, to the byte and at full size, and computes nothing."""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import mlx.core as mx
import pytest

from calibrate.environment import read_environment
from calibrate.networks import parameter_bytes, store_as
from calibrate.vlm.heads import whole_config
from calibrate.vlm.networks import DRAFTERS, MODELS, new_module, without_senses
from model.network.head_target import load_head
from model.network.target import load_config, load_target
from model.network.weight_format import weight_format
from tests.calibrate.vlm.tiny import needs_mlx_vlm

pytestmark = needs_mlx_vlm
TARGETS = ("llada2.0-mini", "diffusiongemma-26b-a4b", "qwen3.5-4b", "gemma-4-12b")
HEADS = (
    ("qwen3.5-4b-mtp", "qwen3.5-4b"),
    ("qwen3.5-35b-a3b-mtp", "qwen3.5-35b-a3b"),
    ("gemma-4-26b-a4b-assistant", "gemma-4-26b-a4b"),
)


@pytest.mark.parametrize("form", ["4bit", "bf16"])
@pytest.mark.parametrize("name", TARGETS)
def test_a_network_has_the_bytes_that_are_counted(name: str, form: str) -> None:
    before = mx.get_active_memory()
    module = without_senses(new_module(load_config(name).config, MODELS, name))
    store_as(module, weight_format(form))
    counted = load_target(name, form)
    if form == "4bit" and read_environment().device == "cpu":
        counted = counted.in_float32()  # scales too: quantized kernels are slow otherwise
    assert parameter_bytes(module) == counted.total_bytes
    assert mx.get_active_memory() - before < 1e8


@pytest.mark.parametrize(("name", "target"), HEADS)
def test_a_head_has_the_bytes_that_are_counted(name: str, target: str) -> None:
    module = new_module(whole_config(name, target), DRAFTERS, name)
    store_as(module, weight_format("bf16"))
    head, _ = load_head(name, "bf16", load_target(target, "bf16"))
    assert parameter_bytes(module) == head.total_bytes
