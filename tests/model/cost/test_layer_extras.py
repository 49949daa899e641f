"""What special layers cost on top, on the device and on the host."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.cost.layer_extras import (
    choosing_effort,
    is_unfused,
    layer_extras,
    library_attention_s,
    meets_new_shape,
)
from model.machine.kernels.attention import LibraryAttention, VectorAttention
from model.network.target import load_target
from model.network.weight_format import weight_format
from tests.model.machines import HOST, NO_DEVICE, NO_HOST, flat_law, machine

LAW = flat_law(bandwidth=1e11)
COSTLY = machine(
    LAW,
    device=replace(NO_DEVICE, experts_layer_s=5e-6, norm_s=1e-6, batch_layer_s=3e-6),
    host=replace(
        HOST,
        build_norm_s=1e-6,
        submit_norm_s=2e-6,
        submit_experts_layer_s=7e-6,
        submit_batch_layer_s=4e-6,
        submit_library_attention_s=1e-5,
    ),
)


@pytest.mark.parametrize(
    ("name", "norms"),
    [
        ("llama-3.1-8b", 0),
        ("qwen3-4b", 2),
        ("gemma-3-4b", 2 + 2),
        ("gemma-3-270m", 2 + 3),  # wide heads count as one more of a narrow layer
        ("gemma-4-12b", 2 + 2),
        ("lfm2-8b-a1b", 2),
        ("olmo-3.1-32b", 1),  # over all heads, and so by its width
    ],
)
def test_the_host_builds_and_submits_every_further_norm(name: str, norms: int) -> None:
    architecture = load_target(name, "4bit").architecture
    attending = [each for each in architecture.layers if each.head_norms] or architecture.layers
    extras = layer_extras(attending[0], architecture.hidden_size, COSTLY, 1, 1)
    assert float(extras.build_s) == pytest.approx(norms * 1e-6)


def test_a_layer_whose_attention_is_skipped_has_no_norms_of_queries_and_keys() -> None:
    architecture = load_target("qwen3-4b", "4bit").architecture
    skipped = replace(architecture.layers[0], mixer=None, mixer_siblings=())
    assert layer_extras(skipped, architecture.hidden_size, COSTLY, 1, 1).build_s == 0.0


def test_experts_and_a_batch_add_up() -> None:
    architecture = load_target("qwen3-30b-a3b", "4bit").architecture
    alone, batch = (
        layer_extras(architecture.layers[0], architecture.hidden_size, COSTLY, 1, sequences)
        for sequences in (1, 4)
    )
    assert float(alone.submit_s) == pytest.approx(7e-6 + 2 * 2e-6)
    assert float(batch.submit_s - alone.submit_s) == pytest.approx(4e-6)
    assert float(batch.device_s - alone.device_s) == pytest.approx(3e-6)


@pytest.mark.parametrize(
    ("name", "effort"),
    [
        ("llama-3.1-8b", 0.0),
        ("qwen3-30b-a3b", 1.0),  # twelve kernels, five of them a usual router's
        ("llada2.0-mini", (12 + 35 - 5) / 12),  # groups of experts, and three sorts
    ],
)
def test_experts_cost_by_the_small_kernels_that_choose_them(name: str, effort: float) -> None:
    architecture = load_target(name, "4bit").architecture
    layer = architecture.layers[-1]
    assert choosing_effort(layer) == pytest.approx(effort)
    choosing = machine(
        LAW,
        device=replace(NO_DEVICE, experts_layer_s=5e-6),
        host=replace(NO_HOST, build_experts_layer_s=6e-6, submit_experts_layer_s=7e-6),
    )
    found = layer_extras(layer, architecture.hidden_size, choosing, 1, 1)
    times = [float(found.device_s), float(found.build_s), float(found.submit_s)]
    assert times == pytest.approx([effort * 5e-6, effort * 6e-6, effort * 7e-6])


@pytest.mark.parametrize(("name", "norms"), [("llama-3.1-8b", 0), ("qwen3-4b", 2)])
def test_norms_of_queries_and_keys_take_the_device_a_time_of_their_own(
    name: str, norms: int
) -> None:
    architecture = load_target(name, "4bit").architecture
    here = machine(LAW, device=replace(NO_DEVICE, head_norm_s=3e-6))
    layer = architecture.layers[0]
    found = layer_extras(layer, architecture.hidden_size, here, 1, 1)
    assert float(found.device_s) == pytest.approx(norms * 3e-6)
    skipped = replace(layer, mixer=None, mixer_siblings=())
    assert layer_extras(skipped, architecture.hidden_size, here, 1, 1).device_s == 0.0


def test_a_library_serves_one_row_of_a_long_context_in_every_layer() -> None:
    target = load_target("llama-3.1-8b", "4bit")
    served = replace(
        COSTLY, library_attention=LibraryAttention(one_row_from_context=256, switch="CUDNN")
    )
    asked = {(1, 128): 0.0, (1, 4096): 32e-5, (2, 4096): 0.0}
    for (rows, context), seconds in asked.items():
        found = library_attention_s(target, served, rows=rows, context=context, sequences=1)
        assert float(found) == pytest.approx(seconds)
    assert library_attention_s(target, COSTLY, rows=1, context=4096, sequences=1) == 0.0


class TestUnfused:
    """Rows that MLX's CUDA kernel does not take, where no library takes them either."""

    HERE = replace(
        COSTLY,
        unfused_attention=COSTLY.attention,
        vector_attention=VectorAttention(most_rows=3, head_dims=(128,), fused_beyond=False),
        device=replace(COSTLY.device, unfused_layer_s=5e-6),
        host=replace(COSTLY.host, build_unfused_layer_s=6e-6, submit_unfused_layer_s=8e-6),
    )

    def test_they_cost_every_layer_that_attends(self) -> None:
        layer = load_target("llama-3.1-8b", "4bit").architecture.layers[0]
        found = layer_extras(layer, 4096, self.HERE, np.array([1, 3, 4, 100]), 1)
        assert np.asarray(found.device_s).tolist() == [0.0, 0.0, 5e-6, 5e-6]
        assert np.asarray(found.build_s).tolist() == [0.0, 0.0, 6e-6, 6e-6]
        assert np.asarray(found.submit_s).tolist() == [0.0, 0.0, 8e-6, 8e-6]
        skipped = replace(layer, mixer=None, mixer_siblings=())
        assert layer_extras(skipped, 4096, self.HERE, 4, 1).device_s == 0.0

    def test_a_batch_pays_for_sharing_a_pass_instead(self) -> None:
        layer = load_target("llama-3.1-8b", "4bit").architecture.layers[0]
        found = layer_extras(layer, 4096, self.HERE, 4, 4)
        assert float(found.device_s) == pytest.approx(3e-6)
        assert float(found.submit_s) == pytest.approx(4e-6)

    def test_a_quantized_cache_and_latents_have_kernels_of_their_own(self) -> None:
        layer = load_target("llama-3.1-8b", "4bit").architecture.layers[0]
        assert is_unfused(layer, self.HERE, 4, quantized_cache=False)
        assert not is_unfused(layer, self.HERE, 4, quantized_cache=True)
        latent = load_target("deepseek-v2-lite", "4bit").architecture.layers[0]
        assert not is_unfused(latent, self.HERE, 4, quantized_cache=False)

    def test_a_quantized_cache_meets_no_new_shape(self) -> None:
        target = replace(load_target("llama-3.1-8b", "4bit"), cache_format=weight_format("4bit"))
        assert not meets_new_shape(target, COSTLY, 5)
        served = replace(
            COSTLY, library_attention=LibraryAttention(one_row_from_context=256, switch="CUDNN")
        )
        assert library_attention_s(target, served, rows=1, context=4096, sequences=1) == 0.0

    def test_they_alone_meet_new_shapes(self) -> None:
        target = load_target("llama-3.1-8b", "4bit")
        rows = np.array([1, 2, 3, 4])
        assert np.asarray(meets_new_shape(target, self.HERE, rows)).tolist() == [0, 0, 0, 1]
        assert np.asarray(meets_new_shape(target, COSTLY, rows)).tolist() == [0, 1, 1, 1]
