"""Plans of block diffusion: ties with a rival, and speed over the answer's length."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError
from model.planners.diffusion import DiffusionCell, plan_diffusion
from model.strategies.plain import Plain
from tests.model.machines import HOST, flat_law, machine, small

TARGET = small("bf16", num_hidden_layers=8)
RIVAL = small("4bit", num_hidden_layers=8)
TILED = machine(flat_law(bandwidth=1e10, flops=1e12, tile_rows=5.0), host=HOST)


PLANLESS = replace(TILED, host=replace(TILED.host, reshape_s=0.0))
"""As on a Mac, no shape costs more because it is new: all passes of a kind cost the same."""


def plan(
    answers: list[int], committed: list[float], *, cached: bool = True, canvas: int | None = None
) -> tuple[DiffusionCell, ...]:
    return plan_diffusion(
        TARGET,
        RIVAL,
        PLANLESS,
        context=300,
        block_length=32,
        answer_lengths=answers,
        committed_per_pass=committed,
        cached=cached,
        canvas_tokens=canvas,
    )


@given(st.integers(1, 300), st.floats(0.1, 32), st.booleans())
def test_the_needed_progress_is_the_tie(answer: int, committed: float, cached: bool) -> None:
    (cell,) = plan([answer], [committed], cached=cached)
    assert cell.rival_tokens_per_s == pytest.approx(
        1 / float(Plain().round(RIVAL, PLANLESS, 300).round_s)
    )
    # A pass costs the same whatever it fixes: as many useful tokens as needed would tie.
    tied = cell.tokens_per_s * cell.needed_per_pass / cell.tokens_per_pass
    assert tied == pytest.approx(cell.rival_tokens_per_s)
    wins = cell.tokens_per_s > cell.rival_tokens_per_s
    assert wins == (cell.tokens_per_pass > cell.needed_per_pass)
    assert cell.passes * cell.tokens_per_pass == pytest.approx(answer)


def test_full_blocks_that_commit_what_is_needed_tie() -> None:
    (cell,) = plan([32], [4.0])
    if not 1 <= cell.needed_per_pass <= 32:
        pytest.fail("the machine of this test should have a tie within a block")
    (tie,) = plan([32], [cell.needed_per_pass])
    assert tie.tokens_per_s == pytest.approx(tie.rival_tokens_per_s)


def test_speed_is_proportional_to_the_answer_until_a_block_is_full() -> None:
    """The article's 30 fold swing: the block is paid in full, whatever the answer uses of it."""
    cells = plan([1, 2, 16, 31, 32, 33], [4.0])
    per_token = cells[0].tokens_per_s
    for cell in cells[:5]:
        assert cell.tokens_per_s == pytest.approx(cell.answer_tokens * per_token)
        assert cell.passes == 8
    # One token more is a second block: half the speed.
    assert cells[5].tokens_per_pass == pytest.approx(33 / 16)
    assert cells[5].tokens_per_s < 0.52 * cells[4].tokens_per_s


def test_a_fixed_canvas_is_paid_for_by_short_answers() -> None:
    """Each block takes its passes over the whole canvas of 256, of which 8 blocks are used."""
    cells = plan([32, 256], [4.0], cached=False, canvas=256)
    assert cells[0].needed_per_pass == cells[1].needed_per_pass
    growing = plan([32, 256], [4.0], cached=False)
    assert growing[0].needed_per_pass < cells[0].needed_per_pass
    cached = plan([32, 256], [4.0])
    assert cached[0].needed_per_pass < growing[0].needed_per_pass


@pytest.mark.parametrize(
    ("committed", "canvas", "line"),
    [
        (0.0, None, "^0 tokens per pass: is impossible in blocks of 32; give a number above 0"),
        (33.0, None, "^33 tokens per pass: is impossible in blocks of 32"),
        (4.0, 31, "^block of 32 tokens: is longer than the canvas of 31"),
    ],
)
def test_what_cannot_be_is_refused(committed: float, canvas: int | None, line: str) -> None:
    with pytest.raises(InputError, match=line):
        plan([16], [committed], canvas=canvas)
