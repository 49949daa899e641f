"""The price of a pass: parts that sum, bounds, and what each term is proportional to."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.forward import cacheless_pass, forward_pass
from model.cost.weight_cost import siblings_time
from model.errors import InputError
from model.machine.kernels.attention import VectorAttention
from model.machine.overheads import Device, Submission
from model.machine.row_law import Shape
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint
from model.network.config import read_config
from model.network.layer import ROUTER_KERNELS
from model.network.target import load_target
from model.network.weight_format import weight_format
from tests.model.machines import NO_DEVICE, NO_HOST, flat_law, machine, small

rows_counts = st.integers(min_value=1, max_value=64)
contexts = st.integers(min_value=0, max_value=100_000)


def mixture(top_k: int) -> Checkpoint:
    config: dict[str, object] = {
        "model_type": "qwen3_moe",
        "hidden_size": 256,
        "intermediate_size": 512,
        "moe_intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "vocab_size": 1024,
        "num_hidden_layers": 2,
        "num_experts": 8,
        "num_experts_per_tok": top_k,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    }
    return Checkpoint(
        architecture=read_config(config, name="mixture", source="test"),
        weight_format=weight_format("bf16"),
    )


def usually_routed(architecture: Architecture) -> Architecture:
    """The same whose routers choose as most do."""
    layers = tuple(
        layer
        if layer.experts is None
        else replace(layer, experts=replace(layer.experts, router_kernels=ROUTER_KERNELS))
        for layer in architecture.layers
    )
    return replace(architecture, layers=layers)


def test_one_row_reads_every_weight_once() -> None:
    """Memory-bound, no overheads: bytes / bandwidth, less the norms, which no kernel waits for."""
    checkpoint = small()
    cost = forward_pass(checkpoint, machine(flat_law(bandwidth=1e9)), rows=1, context=0)
    vectors = 2 * (2 * 2 * 256 + 256)
    assert float(cost.weights_s) == pytest.approx(
        (checkpoint.weight_bytes_per_token - vectors) / 1e9
    )
    assert float(cost.kv_s) == 0.0
    assert float(cost.arithmetic_s) == pytest.approx(0.0)


def test_cache_is_read_once_per_pass() -> None:
    checkpoint = small()
    cost = forward_pass(checkpoint, machine(flat_law(bandwidth=1e9)), rows=1, context=1000)
    assert float(cost.kv_s) == pytest.approx(1000 * checkpoint.kv_bytes_per_token / 1e9)


def test_an_untied_input_table_is_not_read() -> None:
    untied, tied = small(), small(tie_word_embeddings=True)
    fast = machine(flat_law(bandwidth=1e9))
    costs = [forward_pass(each, fast, rows=1, context=0).weights_s for each in (untied, tied)]
    assert untied.total_bytes > tied.total_bytes
    assert float(costs[0]) == float(costs[1])


def test_overheads_count_layers_kernels_and_elements() -> None:
    """2 layers of 4 groups and attention each, and the head: 11 kernels."""
    device = Device(
        kernel_s=1.0,
        layer_s=100.0,
        more_rows_layer_s=10.0,
        element_s=1e-3,
        pass_s=1e4,
        logit_s=1e-6,
    )
    instant = machine(flat_law(bandwidth=1e30), device=device)
    one = forward_pass(small(), instant, rows=1, context=0)
    cost = forward_pass(small(), instant, rows=3, context=0)
    assert float(one.dispatch_s) == pytest.approx(11 * 1.0 + 2 * 100.0 + 1e4)
    assert float(cost.dispatch_s) == pytest.approx(float(one.dispatch_s) + 2 * 10.0)
    assert float(cost.arithmetic_s) == pytest.approx(3 * (2 * 256 * 1e-3 + 1024 * 1e-6))


def test_submitting_counts_matrices_and_a_new_context_is_planned_once() -> None:
    """2 layers of 7 matrices and the head; several rows pay another price and a plan."""
    host = replace(NO_HOST, submit_layer_s=10.0, submit_pass_s=100.0, reshape_s=5.0)
    submissions = {"bf16": Submission(one_row_s=1.0, more_rows_s=2.0)}
    here = machine(flat_law(bandwidth=1e30), host=host, submissions=submissions)
    one, two = (forward_pass(small(), here, rows=rows, context=0) for rows in (1, 2))
    assert float(one.submit_s) == 2 * 10.0 + 100.0 + 15 * 1.0
    assert float(two.submit_s) == 2 * 10.0 + 100.0 + 15 * 2.0
    assert [float(one.build_s), float(two.build_s)] == [0.0, 5.0]
    # A batch has several rows for its matrices, but attention still sees one of each sequence.
    batch = forward_pass(small(), here, rows=1, context=0, sequences=2)
    assert float(batch.submit_s) == float(two.submit_s)
    assert float(batch.build_s) == 0.0
    # A format whose submission was never measured is submitted for nothing.
    assert float(forward_pass(small("4bit"), here, rows=1, context=0).submit_s) == 120.0


@given(rows_counts, contexts, st.sampled_from([1.0, 5.0, math.inf]))
def test_parts_sum_and_lie_between_the_bounds(rows: int, context: int, tile_rows: float) -> None:
    law = flat_law(bandwidth=1e11, flops=1e12, tile_rows=tile_rows)
    device = replace(NO_DEVICE, layer_s=1e-5, kernel_s=1e-6)
    cost = forward_pass(small(), machine(law, device=device), rows=rows, context=context)
    parts = cost.weights_s + cost.kv_s + cost.arithmetic_s + cost.dispatch_s
    assert float(parts) == pytest.approx(float(cost.device_s), rel=1e-12)
    assert float(cost.lower_s) <= float(cost.device_s) * (1 + 1e-9)
    assert float(cost.device_s) <= float(cost.upper_s) * (1 + 1e-9)


@given(rows_counts, contexts)
def test_more_bandwidth_is_never_slower(rows: int, context: int) -> None:
    slow, fast = (
        forward_pass(
            small(), machine(flat_law(bandwidth=b, flops=1e12)), rows=rows, context=context
        ).device_s
        for b in (1e10, 2e10)
    )
    assert float(fast) <= float(slow)


@given(contexts)
def test_more_context_and_more_bits_are_never_faster(context: int) -> None:
    here = machine(flat_law(bandwidth=1e11, flops=1e12))
    near = forward_pass(small("4bit"), here, rows=1, context=context).device_s
    far = forward_pass(small("4bit"), here, rows=1, context=context + 1).device_s
    wider = forward_pass(small("8bit"), here, rows=1, context=context).device_s
    assert float(near) <= float(far)
    assert float(near) <= float(wider)


def test_arrays_of_rows_and_contexts_equal_scalar_calls() -> None:
    here = machine(flat_law(bandwidth=1e11, flops=1e12, tile_rows=5.0))
    rows, contexts_ = np.array([[1.0], [2.0], [9.0]]), np.array([0.0, 128.0, 4096.0])
    together = forward_pass(small(), here, rows=rows, context=contexts_).device_s
    one_by_one = [
        [
            float(forward_pass(small(), here, rows=int(row), context=context).device_s)
            for context in contexts_
        ]
        for row in rows[:, 0]
    ]
    np.testing.assert_allclose(together, one_by_one, rtol=1e-13)


def test_all_experts_chosen_reads_like_a_dense_network() -> None:
    """With top_k = experts every row reads all of them, so bytes do not grow with rows."""
    here = machine(flat_law(bandwidth=1e9))
    one, many = (
        float(forward_pass(mixture(8), here, rows=rows, context=0).weights_s) for rows in (1, 16)
    )
    assert one == pytest.approx(many)


def test_rows_of_a_mixture_read_ever_more_experts() -> None:
    here = machine(flat_law(bandwidth=1e9))
    times = [
        float(forward_pass(mixture(2), here, rows=rows, context=0).weights_s)
        for rows in (1, 2, 4, 64)
    ]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(
        float(forward_pass(mixture(8), here, rows=1, context=0).weights_s), rel=1e-3
    )


def test_a_format_that_was_never_measured_is_refused() -> None:
    law = flat_law(bandwidth=1e9)
    only = machine(law, laws={("4bit", Shape.WIDE): law})
    with pytest.raises(InputError, match="format mxfp4: was never measured on test"):
        forward_pass(small("mxfp4"), only, rows=1, context=0)
    # Other groups of the same bits run the same kernels.
    assert float(forward_pass(small("q4_1"), only, rows=1, context=0).weights_s) > 0


def test_a_pass_may_make_logits_of_fewer_rows() -> None:
    """Only the head's product and its logits depend on them."""
    here = machine(flat_law(bandwidth=1e11, flops=1e9, tile_rows=5.0))
    all_rows, one, same = (
        forward_pass(small(), here, rows=8, context=0.0, head_rows=each) for each in (8, 1, None)
    )
    assert float(same.device_s) == float(all_rows.device_s)
    head = small().head_siblings
    times = [siblings_time(here, head, small().head_formats, rows).total_s for rows in (8, 1)]
    saved = float(times[0] - times[1]) + 7 * small().architecture.head.columns * here.device.logit_s
    assert float(all_rows.device_s - one.device_s) == pytest.approx(saved)
    assert saved > 0.0


def test_whole_rows_are_kept_and_arrays_are_not_and_both_agree() -> None:
    here = machine(flat_law(bandwidth=1e11, flops=1e12, tile_rows=5.0))
    checkpoint = small()
    kept = cacheless_pass(checkpoint, here, 3)
    assert cacheless_pass(checkpoint, here, 3) is kept
    assert float(kept.kv_s) == 0.0
    together = cacheless_pass(checkpoint, here, np.array([3.0])).device_s
    np.testing.assert_allclose(together, [float(kept.device_s)], rtol=1e-14)
    # Another machine is another question, however alike.
    other = machine(flat_law(bandwidth=2e11, flops=1e12, tile_rows=5.0))
    assert float(cacheless_pass(checkpoint, other, 3).device_s) < float(kept.device_s)


def test_a_deep_network_is_committed_in_many_parts_and_a_shallow_one_in_one() -> None:
    """18 kernels a layer of Llama: seven products, attention, and ten small ones."""
    here = replace(machine(flat_law(bandwidth=1e11)), kernels_per_commit=100.0)
    deep = load_target("llama-3.1-8b", "4bit")
    assert float(forward_pass(deep, here, rows=1, context=128).commit_share) == pytest.approx(
        100 / (32 * 18 + 10)
    )
    assert float(forward_pass(small(), here, rows=1, context=128).commit_share) == 1.0
    at_once = machine(flat_law(bandwidth=1e11))
    assert forward_pass(deep, at_once, rows=1, context=128).commit_share == 0.0


def test_a_walk_takes_its_share_of_what_is_submitted_behind_the_first_commit() -> None:
    walking = machine(flat_law(bandwidth=1e11), host=replace(NO_HOST, walk_share=0.25))
    here = replace(walking, kernels_per_commit=100.0)
    deep = forward_pass(load_target("llama-3.1-8b", "4bit"), here, rows=1, context=128)
    share = float(deep.commit_share)
    assert 0.0 < share < 0.5
    assert float(deep.begin_share) == pytest.approx(share + (1.0 - share) * 0.25)
    assert float(forward_pass(small(), here, rows=1, context=128).begin_share) == 1.0
    assert forward_pass(small(), walking, rows=1, context=128).begin_share == 0.0


def test_scores_and_experts_are_further_kernels_of_a_commit() -> None:
    vector = VectorAttention(most_rows=3, head_dims=(128,), fused_beyond=False)
    law = flat_law(bandwidth=1e11)
    here = replace(
        machine(law), kernels_per_commit=100.0, vector_attention=vector, unfused_attention=law
    )

    def kernels(name: str, rows: int, *, usual: bool = False) -> float:
        target = load_target(name, "4bit")
        if usual:
            target = replace(target, architecture=usually_routed(target.architecture))
        return 100.0 / float(forward_pass(target, here, rows=rows, context=128).commit_share)

    deep = "llama-3.1-8b"
    assert kernels(deep, 4) - kernels(deep, 3) == pytest.approx(32 * 8)
    mixed = kernels("qwen3-30b-a3b", 1)  # eight products, a router's among them
    assert mixed == pytest.approx(48 * (8 + 1 + 10 + 12) + 10)
    routed = kernels("llada2.0-mini", 1) - kernels("llada2.0-mini", 1, usual=True)
    assert routed == pytest.approx(19 * (35 - 5))  # the first of 20 layers is dense
