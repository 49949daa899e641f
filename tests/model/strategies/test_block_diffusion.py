"""Block diffusion: rows of a pass, passes of an answer, limits, and lengths that cannot be."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.forward import forward_pass
from model.cost.pipeline import awaited_s
from model.errors import InputError
from model.machine.kernels.attention import VectorAttention
from model.progress.diffusion import BlockProgress
from model.strategies.block_diffusion import MOST_BLOCKS_PRICED, BlockDiffusion
from tests.model.machines import (
    HOST,
    NO_HOST,
    block,
    experts_of,
    flat_law,
    machine,
    network,
    small,
)

TILED = flat_law(bandwidth=1e10, flops=1e11, tile_rows=5.0)
LINEAR = flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0)
TARGET = small("bf16", num_hidden_layers=4)
contexts = st.integers(min_value=0, max_value=4000)


def diffusion(
    *, block_length: int = 32, passes: int = 8, answer_tokens: int = 100, **changes: Any
) -> BlockDiffusion:
    """Blocks that take so many passes each."""
    progress = BlockProgress(block_length=block_length, committed_per_pass=block_length / passes)
    return BlockDiffusion(progress=progress, answer_tokens=answer_tokens, **changes)


@given(contexts)
def test_a_block_of_one_token_in_one_pass_is_awaited_plain_decoding(context: int) -> None:
    """But for making room in the cache, which a block cache is not charged with."""
    here = machine(TILED, host=HOST)
    single = diffusion(block_length=1, passes=1, answer_tokens=1, cached=True)
    one = forward_pass(TARGET, here, rows=1, context=context)
    assert single.tokens_per_pass == 1.0
    assert float(single.round(TARGET, here, context).round_s) == pytest.approx(
        float(awaited_s([one], HOST.sync_s))
    )


@given(st.integers(1, 64), st.integers(1, 2000), st.integers(1, 64))
def test_no_pass_gives_more_than_it_commits(block_length: int, answer: int, passes: int) -> None:
    found = diffusion(block_length=block_length, passes=passes, answer_tokens=answer)
    assert found.tokens_per_pass <= block_length / passes * (1 + 1e-12)
    if answer % block_length == 0:
        assert found.tokens_per_pass == pytest.approx(block_length / passes)


@pytest.mark.parametrize("context", [1000, 1001])
def test_a_block_stays_at_its_context_so_that_its_scores_are_aligned_or_not(context: int) -> None:
    """Four rows behind 1,000 tokens are no multiple of 8 keys, and eight are; behind 1,001 none."""
    rule = VectorAttention(most_rows=3, head_dims=(64,), fused_beyond=False)
    mean = flat_law(bandwidth=1e8)
    here = machine(LINEAR, vector_attention=rule, unfused_attention=mean, aligned_attention=LINEAR)
    for rows in (4, 8):
        single = diffusion(block_length=rows, passes=1, answer_tokens=rows, cached=True)
        staying, growing = (
            float(forward_pass(TARGET, here, rows=rows, context=context, keys=keys).device_s)
            for keys in (context + rows, None)
        )
        assert (staying < growing) == ((context + rows) % 8 == 0)
        assert float(single.round(TARGET, here, context).round_s) == pytest.approx(staying)


@pytest.mark.parametrize(
    ("context", "canvas", "is_aligned"),
    [(0, 4092, False), (0, 4096, True), (1000, 3092, False), (1000, 3096, True), (3, 4093, True)],
)
def test_without_a_cache_the_canvas_is_all_keys_and_no_row_counts_twice(
    context: int, canvas: int, is_aligned: bool
) -> None:
    """Twice 4,092 would be a multiple of 8."""
    rule = VectorAttention(most_rows=3, head_dims=(64,), fused_beyond=False)
    mean, best = flat_law(bandwidth=1e8), flat_law(bandwidth=1e9)
    here = machine(LINEAR, vector_attention=rule, unfused_attention=mean, aligned_attention=best)
    rows = context + canvas
    growing = forward_pass(TARGET, here, rows=rows, context=rows)
    saved_s = 0.9 * float(growing.kv_s) if is_aligned else 0.0
    found = diffusion(answer_tokens=32, canvas_tokens=canvas).round(TARGET, here, context)
    assert float(found.round_s) == pytest.approx(float(growing.device_s) - saved_s)


def test_by_hand() -> None:
    """100 tokens in blocks of 32 are 4 blocks of 8 passes: 3.125 tokens a pass, not 4."""
    assert diffusion().blocks == 4
    assert diffusion().tokens_per_pass == 3.125


def host_of(found: BlockDiffusion) -> float:
    """Host time of a mean pass where a new shape costs a second and nothing else anything."""
    here = machine(TILED, host=replace(NO_HOST, reshape_s=1.0))
    return float(dict(found.round(TARGET, here, 0).parts_s)["host"])


@pytest.mark.parametrize(
    ("changes", "passes_with_new_shapes"),
    [
        # Each of 4 blocks has one shape to denoise, and all but the last one more to write it.
        ({"cached": True}, 7),
        ({}, 4),  # a canvas that grows
        ({"canvas_tokens": 128}, 1),
        ({"cached": True, "answer_tokens": 32}, 1),
        ({"cached": True, "new_share": 0.25}, 8),  # of a run that says so
    ],
)
def test_blocks_meet_new_shapes(changes: dict[str, Any], passes_with_new_shapes: int) -> None:
    found = diffusion(passes=8, **changes)
    assert host_of(found) * 8 * found.blocks == pytest.approx(passes_with_new_shapes, rel=1e-3)


def test_no_pass_meets_two_new_shapes() -> None:
    assert diffusion(passes=1, cached=True).new_shapes == 1.0


class TestRows:
    """What a pass computes with each cache."""

    def test_a_block_cache_leaves_the_block_at_the_context_before_it(self) -> None:
        here = machine(TILED)
        found = diffusion(answer_tokens=64, cached=True)
        seconds = [
            float(forward_pass(TARGET, here, rows=32, context=200 + done).device_s)
            for done in (0, 32)
        ]
        assert float(found.round(TARGET, here, 200).round_s) == pytest.approx(np.mean(seconds))
        assert found.rows == 32

    def test_without_a_cache_prompt_and_blocks_so_far_are_computed_anew(self) -> None:
        here = machine(TILED)
        found = diffusion(answer_tokens=64)
        seconds = [
            float(forward_pass(TARGET, here, rows=rows, context=rows).device_s)
            for rows in (232, 264)
        ]
        assert float(found.round(TARGET, here, 200).round_s) == pytest.approx(np.mean(seconds))

    def test_a_fixed_canvas_costs_the_same_whatever_the_answer(self) -> None:
        here = machine(TILED)
        canvas_s = float(forward_pass(TARGET, here, rows=456, context=456).device_s)
        for answer in (1, 32, 256):
            found = diffusion(answer_tokens=answer, canvas_tokens=256)
            assert float(found.round(TARGET, here, 200).round_s) == pytest.approx(canvas_s)
            assert found.rows == 256

    def test_a_long_answer_is_priced_by_evenly_spaced_blocks(self) -> None:
        """Linear in rows without attention: the mean over 16 blocks is that over all 100."""
        here = machine(LINEAR)
        headless = network(block(None), block(None))
        found = diffusion(block_length=10, passes=5, answer_tokens=1000)
        assert found.blocks > MOST_BLOCKS_PRICED
        every = [
            float(forward_pass(headless, here, rows=rows, context=rows).device_s)
            for rows in range(10, 1001, 10)
        ]
        priced_s = float(found.round(headless, here, 0).round_s)
        # Evenly spaced blocks are rounded to whole ones, so the middle of them moves a little.
        assert priced_s == pytest.approx(np.mean(every), rel=0.01)

    def test_a_canvas_reads_nearly_all_experts(self) -> None:
        """LLaDA2-mini's 8 of 256: 163 experts at 32 rows, 20 times those of one row."""
        here = machine(flat_law(bandwidth=1e9))
        sparse = network(block(None, experts_of(num_experts=256, top_k=8)))
        fixed_s = (sparse.head_bytes + 256 * 256 * 2) / 1e9
        found = diffusion(answer_tokens=32, cached=True).round(sparse, here, 0)
        one = forward_pass(sparse, here, rows=1, context=0)
        ratio = (float(found.round_s) - fixed_s) / (float(one.device_s) - fixed_s)
        assert ratio == pytest.approx(163.3 / 8, rel=1e-3)


@given(contexts, st.booleans(), st.integers(1, 300))
def test_parts_sum_and_lie_between_the_bounds(context: int, cached: bool, answer: int) -> None:
    here = machine(TILED, host=HOST)
    found = diffusion(cached=cached, answer_tokens=answer).round(TARGET, here, context)
    total_s = sum(float(part_s) for _, part_s in found.parts_s)
    assert total_s == pytest.approx(float(found.round_s), rel=1e-12)
    assert float(found.lower_s) <= total_s * (1 + 1e-9)
    assert total_s <= float(found.upper_s) * (1 + 1e-9)


@given(st.lists(contexts, min_size=1, max_size=4), st.booleans())
def test_arrays_of_contexts_equal_scalar_calls(asked: list[int], cached: bool) -> None:
    here = machine(TILED, host=HOST)
    strategy = diffusion(cached=cached)
    together = strategy.round(TARGET, here, np.array(asked, dtype=float)).round_s
    alone = [float(strategy.round(TARGET, here, context).round_s) for context in asked]
    np.testing.assert_allclose(np.broadcast_to(together, len(asked)), alone, rtol=1e-12)


def test_settings_say_which_canvas() -> None:
    assert diffusion().settings == {
        "block_length": 32,
        "committed_per_pass": 4.0,
        "answer_tokens": 100,
        "cache": "none",
    }
    assert diffusion(canvas_tokens=128, cached=True).settings["cache"] == "block"
    assert diffusion(canvas_tokens=128).settings["canvas"] == 128


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"answer_tokens": 0}, "answer of 0 tokens: is out of range; give 1 to 1000000 tokens"),
        ({"answer_tokens": 10**6 + 1}, "answer of 1000001 tokens: is out of range; give 1 to"),
        (
            {"canvas_tokens": 31, "answer_tokens": 31},
            "block of 32 tokens: is longer than the canvas of 31; "
            "give a canvas of at least 32 tokens",
        ),
        (
            {"canvas_tokens": 64},
            "answer of 100 tokens: is longer than the canvas of 64; "
            "give a canvas of at least 100 tokens",
        ),
    ],
)
def test_lengths_that_cannot_be_are_refused(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(line)}"):
        diffusion(**changes)
