# pyright: reportUnknownMemberType=false
from __future__ import annotations

import time

import mlx.core as mx
import numpy as np
import pytest
from numpy.typing import NDArray

from calibrate import kernels, mlx_device, stacks
from calibrate.chain import Chain
from calibrate.cold import ACCELERATOR, PROCESSOR
from calibrate.probe_network import config_of
from calibrate.timing import Pace, Workload, summarise, visit
from model.machine.kernels.attention import ALIGNED_KEYS
from model.network.weight_format import weight_format

FORMATS = ("4bit-s32", "4bit", "8bit", "mxfp4", "nvfp4", "mxfp8", "fp32", "bf16")
SHAPES = ((128, 128), (128, 384), (384, 128), (192, 128))


def numbers(array: mx.array) -> NDArray[np.float32]:
    return np.array(array.astype(mx.float32), dtype=np.float32)


def outcome(chain: Chain, units: int) -> NDArray[np.float32]:
    """The value at the end of a chain."""
    value = chain.start
    for turn in range(units):
        value = chain.step(value, turn)
    return numbers(value)


class TestMatrices:
    @pytest.mark.parametrize("name", FORMATS)
    def test_bytes_are_what_the_cost_model_counts(self, name: str) -> None:
        form = weight_format(name)
        parts = kernels.matrix(form, 256, 96, mlx_device.activation_of(form))
        if form.scale_bits == 16:  # scales take the width of the processor's activations
            form = form.with_scale_bits(32) if mlx_device.on_processor() else form
        assert sum(part.nbytes for part in parts) == form.matrix_bytes(96, 256)

    def test_copies_are_different_matrices(self) -> None:
        matrices = kernels.Matrices("4bit-s32", 128, 128)
        x = mx.ones((1, 1, 128))
        first, second = (matrices.product(x, turn) for turn in (0, 1))
        assert not mx.array_equal(first, second).item()
        assert mx.array_equal(first, matrices.product(x, PROCESSOR.most)).item()

    def test_a_gigabyte_is_cold(self) -> None:
        for size_bytes in (2**21, 2**24, 2**29):
            assert ACCELERATOR.copies(size_bytes) * size_bytes >= 2**30


class TestLink:
    @pytest.mark.parametrize(
        ("depth", "columns", "width"),
        [(128, 128, 128), (128, 384, 128), (384, 128, 128), (192, 128, 96), (200, 128, 100)],
    )
    def test_it_fills_the_depth_from_what_there_is(
        self, depth: int, columns: int, width: int
    ) -> None:
        y = mx.random.normal((1, 3, columns))
        linked = numbers(kernels.link(depth, columns, mx.float32)(y))
        repeated = np.tile(np.arctan(numbers(y)[..., :width]), depth // width)
        np.testing.assert_allclose(linked, repeated, rtol=1e-5)


@pytest.mark.parametrize(("depth", "columns"), SHAPES)
@pytest.mark.parametrize("name", ["4bit-s32", "fp32", "mxfp8"])
def test_long_chains_neither_die_out_nor_overflow(name: str, depth: int, columns: int) -> None:
    matrices = kernels.Matrices(name, depth, columns)
    chain = kernels.linear_chain(matrices, depth=depth, columns=columns, rows=2)
    values = np.abs(outcome(chain, 150))
    assert values.shape == (1, 2, depth)
    assert 0.1 < values.mean() < 2.0


def test_every_link_of_a_chain_depends_on_the_one_before() -> None:
    matrices = kernels.Matrices("fp32", 128, 128)
    chains = [kernels.linear_chain(matrices, depth=128, columns=128, rows=1) for _ in range(2)]
    assert not mx.array_equal(chains[0].start, chains[1].start).item()
    assert not np.allclose(outcome(chains[0], 20), outcome(chains[1], 20))


@pytest.mark.parametrize(("rows", "contexts"), [(1, 1), (3, 1), (3, 8)])
def test_attention_is_causal_over_the_cache(rows: int, contexts: int) -> None:
    """Of contexts that are gone round the first is half their number below that of the caches."""
    caches = kernels.Caches(kv_heads=2, head_dim=64, context=300)
    first = 300 - contexts // 2
    chain = kernels.attention_chain(
        caches, query_heads=4, head_dim=64, rows=rows, contexts=contexts
    )
    keys, values = (numbers(part)[0, :, :first].repeat(2, 0) for part in caches.buffers[0])
    scores = numbers(chain.start)[0] @ keys.transpose(0, 2, 1) / 8
    hidden = np.triu(np.ones((rows, first), dtype=bool), k=first - rows + 1)
    weights = np.exp(np.where(hidden, -np.inf, scores))
    expected = weights / weights.sum(-1, keepdims=True) @ values
    np.testing.assert_allclose(outcome(chain, 1)[0], expected, atol=2e-5)


def test_contexts_are_gone_round() -> None:
    caches = kernels.Caches(kv_heads=1, head_dim=64, context=300, sequences=2)
    chain = kernels.attention_chain(caches, query_heads=2, head_dim=64, rows=1, contexts=8)
    first, *others = (numbers(chain.step(chain.start, turn)) for turn in range(8))
    assert all(not np.array_equal(first, each) for each in others)
    assert [*caches.turned(8)] == [*range(296, 304)]


@pytest.mark.parametrize("context", [252, 253, 254, 255, 256])
def test_there_is_room_for_every_context_that_is_gone_round(context: int) -> None:
    caches = kernels.Caches(kv_heads=1, head_dim=64, context=context)
    contexts = caches.turned(ALIGNED_KEYS)
    assert {*contexts} >= {context, context + 3}
    assert caches.buffers[0][0].shape[2] >= contexts[-1]


PACE = Pace(repetition_s=0.0, repeats=5, most_repeats=9, check_tries=1, limit_s=2.0)


def seconds(workload: Workload) -> float:
    return summarise([visit(workload, time.perf_counter, PACE, 4, check=False)]).seconds


@pytest.mark.skipif(not mlx_device.on_processor(), reason="the law of MLX's CPU back end")
def test_on_a_processor_eight_rows_cost_about_eight_times_one() -> None:
    matrices = kernels.Matrices("4bit-s32", 512, 512)
    one, eight = (
        seconds(kernels.linear_chain(matrices, depth=512, columns=512, rows=rows))
        for rows in (1, 8)
    )
    assert 4 < eight / one < 16


@pytest.mark.parametrize("operation", ["copy", "sum"])
def test_small_chains_run(operation: str) -> None:
    for workload in (
        kernels.op_chain(),
        kernels.link_chain(depth=128, columns=64, rows=2),
        kernels.copy_chain(operation=operation, size_bytes=4096),
    ):
        workload.prepare(9)()


CONFIG = config_of(
    {
        "hidden": 128,
        "intermediate": 128,
        "query_heads": 2,
        "kv_heads": 1,
        "head_dim": 64,
        "vocab": 64,
        "layers": 2,
    }
)


class TestPasses:
    @pytest.mark.parametrize("mode", ["build", "submit", "pipelined", "decode", "awaited"])
    def test_every_pass_has_the_same_context(self, mode: str) -> None:
        network = stacks.random_model(CONFIG, "4bit")
        passes = stacks.Passes(network, format_name="4bit-s32", rows=3, context=256)
        loop = stacks.Loop(passes, mode)
        for _ in range(2):
            loop.prepare(3)()
        assert [cache.offset for cache in passes.caches] == [256, 256]
        assert {cache.keys.shape[2] for cache in passes.caches} == {512}

    def test_built_ahead_they_give_the_tokens_of_waiting(self) -> None:
        network = stacks.random_model(CONFIG, "fp32")
        passes = stacks.Passes(network, format_name="fp32", rows=2, context=20)
        start = mx.array([5, 6])
        ahead = [passes.advance(start)]
        for _ in range(3):
            ahead.append(passes.advance(ahead[-1]))
        mx.eval(ahead[-1])
        tokens = start
        for expected in ahead:
            tokens = passes.advance(tokens)
            mx.eval(tokens)
            assert tokens.tolist() == expected.tolist()


@pytest.mark.parametrize("tokens", [1, 40])
def test_experts_route_every_token_and_stay_finite(tokens: int) -> None:
    sizes = {"hidden": 128, "num_experts": 8, "top_k": 2}
    experts = stacks.Experts("4bit-s32", intermediate=64, **sizes)
    chain = stacks.experts_chain(experts, **sizes, tokens=tokens)
    values = outcome(chain, 30)
    assert values.shape == (1, tokens, 128)
    assert 0.1 < np.abs(values).mean() < 2.0
