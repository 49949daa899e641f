"""Speedups of whole answers: the prefill is as long with a draft as without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.published.beams import WholeAnswer
from calibrate.validation.whole_answer import prefill_share, with_prefill
from model.machine.profile_store import named_profile
from model.network.target import load_target

SPEEDUPS = st.floats(min_value=0.05, max_value=20.0)
SHARES = st.floats(min_value=0.0, max_value=10.0)


@given(SPEEDUPS, SHARES)
def test_a_prefill_draws_a_speedup_towards_one(speedup: float, share: float) -> None:
    whole = with_prefill(speedup, share)
    low, high = sorted((1.0, speedup))
    assert low * (1 - 1e-12) <= whole <= high * (1 + 1e-12)


@given(SPEEDUPS)
def test_without_a_prompt_it_stays(speedup: float) -> None:
    assert with_prefill(speedup, 0.0) == pytest.approx(speedup)


def test_times_add_up() -> None:
    """A prefill of 2 s, 20 s of plain tokens, which take 8 s with a draft: 22 s over 10 s."""
    assert with_prefill(20 / 8, 2 / 20) == pytest.approx(2.2)


def test_the_share_falls_with_the_answer_and_rises_with_the_prompt() -> None:
    profile, target = named_profile("m2-10core-mlx-0.32"), load_target("llama-2-7b", "bf16")

    def share(prompt: int, answer: int) -> float:
        whole = WholeAnswer(prompt_tokens=prompt, answer_tokens=answer)
        return prefill_share(whole, target, profile, context=100.0)

    assert share(66, 401) == pytest.approx(share(66, 201) / 2)
    assert share(66, 201) < share(512, 201)
