"""Break-even: the acceptance that is needed, none, and the draft length that pays best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.commands.break_even import as_text
from model.commands.break_even_answer import break_even_rows
from model.cost.forward import forward_pass
from model.machine.machine import Machine
from model.machine.row_law import Regime, RowLaw
from model.prediction.break_even import best_draft_length, break_even
from model.prediction.needed_range import NeededRange
from model.prediction.round_costs import RoundCosts, round_costs
from model.progress.acceptance import Acceptance
from model.strategies.speculative import Speculative
from tests.model.machines import HOST, NO_HOST, flat_law, machine, small

LINEAR = flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0)
FLAT = flat_law(bandwidth=1e9)
DRAFT = small("bf16", num_hidden_layers=1)
TARGET = small("bf16", num_hidden_layers=8)


def costs_of(here: Machine, *, context: float, draft_lengths: Sequence[int]) -> RoundCosts:
    strategy = Speculative(draft=DRAFT, draft_length=1, acceptance=Acceptance(by_position=(0.0,)))
    return round_costs(strategy, TARGET, here, context=context, draft_lengths=draft_lengths)


def test_on_a_machine_linear_in_rows_no_acceptance_wins() -> None:
    """k + 1 rows cost k + 1 passes, and the drafts come on top."""
    costs = costs_of(machine(LINEAR), context=0.0, draft_lengths=range(1, 9))
    assert break_even(costs) == (None,) * 8


def test_with_free_rows_break_even_is_where_leviathan_puts_it() -> None:
    """Flat verify, no host: (1 + k c) t_1 per round, so E(alpha) = 1 + k c."""
    here = machine(FLAT)
    costs = costs_of(here, context=0.0, draft_lengths=(1, 4))
    cost = float(forward_pass(DRAFT, here, rows=1, context=0.0).device_s) / costs.plain_s
    one, four = break_even(costs)
    assert one == pytest.approx(cost)
    assert four is not None
    assert sum(four**j for j in range(5)) == pytest.approx(1 + 4 * cost)


@given(st.integers(min_value=1, max_value=12))
def test_speedup_is_one_at_break_even(k: int) -> None:
    costs = costs_of(machine(FLAT, host=HOST), context=256.0, draft_lengths=(k,))
    (needed,) = break_even(costs)
    assert needed is not None
    at = Acceptance(by_position=(needed,))
    assert float(costs.speedup(at)[0]) == pytest.approx(1.0, abs=1e-6)


def test_a_free_draft_wins_at_any_acceptance() -> None:
    costs = costs_of(machine(FLAT, host=NO_HOST), context=0.0, draft_lengths=(1,))
    free = replace(costs, missed_s=np.array([0.9 * costs.plain_s]))
    assert break_even(free) == (0.0,)


def test_best_draft_length_jumps_over_a_cliff() -> None:
    """A per-row kernel below 8 rows and a flat one from 8 on: k = 7 beats k = 4."""
    few = Regime(
        first_row=1,
        tile_rows=1.0,
        pads=False,
        bandwidth_bytes_per_s=1e15,
        flops_per_s=1e12,
    )
    many = replace(few, first_row=8, tile_rows=float("inf"), bandwidth_bytes_per_s=1e12)
    many = replace(many, flops_per_s=float("inf"))
    law = RowLaw(overlap=float("inf"), rows_measured=64, regimes=(few, many))
    costs = costs_of(machine(law), context=0.0, draft_lengths=range(1, 10))
    best = best_draft_length(costs, Acceptance(by_position=(0.8,)))
    assert best.draft_length == 7
    assert dict(best.regret)[6] > 0.2


def test_where_nothing_wins_the_sentence_prices_a_draft_that_is_always_right() -> None:
    """Its rounds all follow a full accept, so each pays for catching up too."""
    costs = costs_of(machine(LINEAR), context=0.0, draft_lengths=(1, 2))
    never = NeededRange(low=None, high=None)
    rows = break_even_rows(costs, (never, never))
    for i, k in enumerate(costs.draft_lengths):
        round_s = costs.missed_s[i] + costs.catch_up_s[i].sum()
        assert rows[i].best_speedup == pytest.approx((k + 1) * costs.plain_s / round_s)
    dearest = max(row.best_speedup for row in rows)
    assert f"always right costs {1 / dearest:.2f} plain tokens" in as_text(rows)


@given(st.floats(min_value=0, max_value=1))
def test_speedup_never_exceeds_tokens_per_pass(acceptance: float) -> None:
    at = Acceptance(by_position=(acceptance,))
    costs = costs_of(machine(FLAT, host=HOST), context=0.0, draft_lengths=range(1, 9))
    tokens = [at.tokens_per_pass(k) for k in range(1, 9)]
    assert np.all(costs.speedup(at) <= np.array(tokens) * (1 + 1e-9))
