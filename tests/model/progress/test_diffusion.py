"""Block diffusion: whole blocks are paid for, whatever part of the last one is used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError
from model.progress.diffusion import BlockProgress, from_steps, from_trace, published_commits

block_lengths = st.integers(min_value=1, max_value=256)
answers = st.integers(min_value=1, max_value=4096)


def test_worked_numbers() -> None:
    """40 tokens in blocks of 32: 2 blocks, 64 committed at 4 a pass in 16 passes, 2.5 of use."""
    progress = from_steps(block_length=32, denoising_steps=8)
    assert progress.passes_per_block == 8.0
    assert progress.committed_tokens(40) == 64.0
    assert progress.passes(40) == 16.0
    assert progress.useful_per_pass(40) == 2.5


def test_a_short_answer_pays_for_a_whole_canvas() -> None:
    """10 tokens on a canvas of 256 commit 25.6 times what is used; 256 waste nothing."""
    progress = from_steps(block_length=256, denoising_steps=16)
    answer = np.array([10.0, 256.0])
    assert progress.passes(answer) == pytest.approx([16.0, 16.0])
    assert progress.useful_per_pass(answer) == pytest.approx([0.625, 16.0])


@given(block_lengths, answers, st.data())
def test_no_more_is_used_than_committed(block: int, answer: int, data: st.DataObject) -> None:
    steps = data.draw(st.integers(min_value=1, max_value=block))
    progress = from_steps(block_length=block, denoising_steps=steps)
    assert progress.passes(answer) == pytest.approx(steps * -(-answer // block))
    assert answer <= progress.committed_tokens(answer) < answer + block
    assert progress.useful_per_pass(answer) <= progress.committed_per_pass * (1 + 1e-12)
    assert progress.useful_per_pass(block) == pytest.approx(progress.committed_per_pass)


def test_blocks_of_one_token_in_one_step_are_plain_decoding() -> None:
    progress = from_steps(block_length=1, denoising_steps=1)
    assert progress.passes(77) == 77.0
    assert progress.useful_per_pass(77) == 1.0


def test_a_trace_against_a_seeded_run() -> None:
    """Each pass commits the positions it is sure of; at least one, as models do."""
    generator = np.random.default_rng(8)
    commits: list[int] = []
    for _ in range(500):
        left = 32
        while left:
            commits.append(max(1, int(generator.binomial(left, 0.2))))
            left -= commits[-1]
    progress = from_trace(commits, block_length=32)
    assert progress.committed_per_pass == pytest.approx(500 * 32 / len(commits))
    assert progress.passes(500 * 32) == pytest.approx(len(commits))


def test_published_rows_commit_between_one_and_a_block() -> None:
    progress = published_commits("reasoning")
    # LLaDA2.0-mini, and LLaDA2.1-mini in its two modes, each on eight benchmarks.
    assert (progress.tokens_per_pass.pairs, len(progress.rows)) == (3, 24)
    assert 1.0 < progress.tokens_per_pass.lowest <= progress.tokens_per_pass.highest < 32.0
    assert progress.acceptance is None


@pytest.mark.parametrize(
    ("build", "line"),
    [
        (
            lambda: from_steps(block_length=32, denoising_steps=33),
            "33 denoising steps: do not fill blocks of 32; give 1 to 32",
        ),
        (lambda: from_steps(block_length=32, denoising_steps=0), "0 denoising steps"),
        (lambda: from_trace([3, 40], block_length=32), "40 tokens: cannot be committed in a block"),
        (lambda: from_trace([3, -1], block_length=32), "-1 tokens: cannot be committed"),
        (lambda: from_trace([0, 0], block_length=32), "the trace: commits nothing"),
        (lambda: from_trace([], block_length=32), "give the commits of each pass of a run"),
        (lambda: BlockProgress(block_length=0, committed_per_pass=1.0), "block length 0"),
        (
            lambda: BlockProgress(block_length=8, committed_per_pass=8.1),
            r"8\.1 tokens per pass: is impossible in blocks of 8",
        ),
        (
            lambda: BlockProgress(block_length=8, committed_per_pass=float("nan")),
            "nan tokens per pass: is impossible",
        ),
        (lambda: from_steps(block_length=8, denoising_steps=2).passes(0), "answer of 0 tokens"),
        (lambda: published_commits("code"), "has no published row that says how many tokens"),
    ],
)
def test_bad_input_is_one_line(build: Callable[[], object], line: str) -> None:
    with pytest.raises(InputError, match=line):
        build()
