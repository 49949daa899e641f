"""How many tokens a pass is made to fix: schedules fill a block, coins keep their mean."""

from __future__ import annotations

import mlx.core as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.run_settings import Settings
from calibrate.vlm.choice import how_many, surest
from calibrate.vlm.commits import Commits


@given(st.data())
def test_a_schedule_fills_each_block_in_its_steps(data: st.DataObject) -> None:
    block = data.draw(st.integers(1, 256))
    steps = data.draw(st.integers(1, block))
    commits = Commits(Settings(strategy="diffusion", block=block, steps=steps))
    for _ in range(2):
        counts = [commits.next() for _ in range(steps)]
        assert sum(counts) == block
        assert max(counts) - min(counts) <= 1
        assert min(counts) >= 1
        commits.new_block()


@pytest.mark.parametrize("committed", [1.0, 2.5, 4.25])
def test_a_coin_keeps_its_mean_and_its_seed(committed: float) -> None:
    settings = Settings(strategy="diffusion", block=32, committed=committed, seed=3)
    coins = [Commits(settings), Commits(settings)]
    counts, again = ([coin.next() for _ in range(4000)] for coin in coins)
    assert counts == again
    assert set(counts) <= {int(committed), int(committed) + 1}
    assert sum(counts) / 4000 == pytest.approx(committed, abs=0.03)


def test_without_either_nothing_is_forced() -> None:
    assert not Commits(Settings(strategy="diffusion", block=8, threshold=0.5)).forced


def test_the_surest_rows_that_are_open_are_chosen() -> None:
    confidence = mx.array([[0.1, 0.9, 0.3, 0.8, 0.2]])
    open_rows = mx.array([[True, False, True, True, True]])
    assert surest(confidence, open_rows, 2).tolist() == [[False, False, True, True, False]]
    assert how_many(surest(confidence, open_rows, 9)) == 4
