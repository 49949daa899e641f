"""Strategies: rounds in parts that sum, limits of draft length and acceptance, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.acceptance import Acceptance
from model.break_even import best_draft_length, round_costs
from model.commands.break_even import as_text, break_even_rows
from model.errors import InputError
from model.forward import Bound, forward_pass
from model.machine import Host
from model.row_law import Regime, RowLaw
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative
from tests.model.machines import NO_HOST, flat_law, machine, small

HOST = Host(
    build_layer_s=1e-5,
    build_pass_s=2e-5,
    submit_layer_s=5e-6,
    submit_pass_s=5e-6,
    sync_s=1e-4,
    reshape_s=3e-4,
)
LINEAR = flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0)
FLAT = flat_law(bandwidth=1e9)
DRAFT = small("bf16", num_hidden_layers=1)
TARGET = small("bf16", num_hidden_layers=8)


def speculative(draft_length: int, acceptance: float) -> Speculative:
    return Speculative(
        draft=DRAFT,
        draft_length=draft_length,
        acceptance=Acceptance(by_position=(acceptance,)),
    )


class TestRounds:
    """Time in named parts."""

    def test_plain_is_one_pass_when_the_host_is_fast(self) -> None:
        here = machine(FLAT)
        plain = Plain().round(TARGET, here, 100.0)
        one = forward_pass(TARGET, here, rows=1, context=100.0)
        assert float(plain.round_s) == pytest.approx(float(one.device_s))
        assert plain.bound is Bound.MEMORY

    def test_plain_with_a_slow_host_is_bound_by_overhead(self) -> None:
        slow = machine(flat_law(bandwidth=1e15), host=replace(HOST, build_pass_s=1.0))
        plain = Plain().round(TARGET, slow, 0.0)
        assert float(plain.round_s) == pytest.approx(1.0, rel=1e-3)
        assert plain.bound is Bound.OVERHEAD

    @given(st.integers(min_value=1, max_value=16), st.floats(min_value=0, max_value=1))
    def test_a_round_is_its_drafts_its_verify_and_its_waiting(
        self, k: int, acceptance: float
    ) -> None:
        here = machine(FLAT, host=HOST)
        round_ = speculative(k, acceptance).round(TARGET, here, 64.0)
        parts = {name: float(part_s) for name, part_s in round_.parts_s}
        verify = forward_pass(TARGET, here, rows=k + 1, context=64.0)
        assert sum(parts.values()) == pytest.approx(float(round_.round_s), rel=1e-12)
        assert parts["weights"] == pytest.approx(float(verify.weights_s))
        assert parts["sync"] == HOST.sync_s
        assert parts["host"] >= -1e-12
        assert float(round_.lower_s) <= float(round_.round_s) * (1 + 1e-9)
        assert float(round_.round_s) <= float(round_.upper_s) * (1 + 1e-9)

    def test_a_full_accept_makes_the_next_draft_pass_two_rows(self) -> None:
        here = machine(LINEAR)
        missed, accepted = (
            float(speculative(4, rate).round(TARGET, here, 64.0).round_s) for rate in (0.0, 1.0)
        )
        one, two = (
            float(forward_pass(DRAFT, here, rows=rows, context=64.0).device_s) for rows in (1, 2)
        )
        assert accepted - missed == pytest.approx(two - one)

    @pytest.mark.parametrize("draft_length", [0, -1, 65, 10**9])
    def test_a_draft_length_no_round_has_is_refused(self, draft_length: int) -> None:
        with pytest.raises(InputError, match=f"draft length {draft_length}: is not a length"):
            speculative(draft_length, 0.5)

    def test_a_draft_of_another_vocabulary_is_refused(self) -> None:
        stranger = replace(speculative(2, 0.5), draft=small(vocab_size=2048))
        with pytest.raises(InputError, match="has a vocabulary of 2048 tokens, small has 1024"):
            stranger.round(TARGET, machine(FLAT), 0.0)

    def test_a_padded_vocabulary_of_the_same_family_is_taken(self) -> None:
        padded = replace(speculative(2, 0.5), draft=small(vocab_size=1032))
        assert float(padded.round(TARGET, machine(FLAT), 0.0).round_s) > 0


class TestBreakEven:
    """The acceptance that is needed."""

    def test_on_a_machine_linear_in_rows_no_acceptance_wins(self) -> None:
        """k + 1 rows cost k + 1 passes, and the drafts come on top."""
        costs = round_costs(TARGET, DRAFT, machine(LINEAR), context=0.0, draft_lengths=range(1, 9))
        assert costs.break_even() == (None,) * 8

    def test_with_free_rows_break_even_is_where_leviathan_puts_it(self) -> None:
        """Flat verify, no host: (1 + k c) t_1 per round, so E(alpha) = 1 + k c."""
        here = machine(FLAT)
        costs = round_costs(TARGET, DRAFT, here, context=0.0, draft_lengths=(1, 4))
        cost = float(forward_pass(DRAFT, here, rows=1, context=0.0).device_s) / costs.plain_s
        one, four = costs.break_even()
        assert one == pytest.approx(cost)
        assert four is not None
        assert sum(four**j for j in range(5)) == pytest.approx(1 + 4 * cost)

    @given(st.integers(min_value=1, max_value=12))
    def test_speedup_is_one_at_break_even(self, k: int) -> None:
        costs = round_costs(
            TARGET, DRAFT, machine(FLAT, host=HOST), context=256.0, draft_lengths=(k,)
        )
        (needed,) = costs.break_even()
        assert needed is not None
        at = Acceptance(by_position=(needed,))
        assert float(costs.speedup(at)[0]) == pytest.approx(1.0, abs=1e-6)

    def test_a_free_draft_wins_at_any_acceptance(self) -> None:
        costs = round_costs(
            TARGET, DRAFT, machine(FLAT, host=NO_HOST), context=0.0, draft_lengths=(1,)
        )
        free = replace(costs, missed_s=np.array([0.9 * costs.plain_s]))
        assert free.break_even() == (0.0,)

    def test_best_draft_length_jumps_over_a_cliff(self) -> None:
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
        costs = round_costs(TARGET, DRAFT, machine(law), context=0.0, draft_lengths=range(1, 10))
        best = best_draft_length(costs, Acceptance(by_position=(0.8,)))
        assert best.draft_length == 7
        assert dict(best.regret)[6] > 0.2

    def test_where_nothing_wins_the_sentence_prices_a_draft_that_is_always_right(self) -> None:
        """Its rounds all follow a full accept, so each pays for catching up too."""
        costs = round_costs(TARGET, DRAFT, machine(LINEAR), context=0.0, draft_lengths=(1, 2))
        rows = break_even_rows(costs)
        for i, k in enumerate(costs.draft_lengths):
            round_s = costs.missed_s[i] + costs.catch_up_s[i]
            assert rows[i].best_speedup == pytest.approx((k + 1) * costs.plain_s / round_s)
        dearest = max(row.best_speedup for row in rows)
        assert f"always right costs {1 / dearest:.2f} plain tokens" in as_text(rows)

    @given(st.floats(min_value=0, max_value=1))
    def test_speedup_never_exceeds_tokens_per_pass(self, acceptance: float) -> None:
        at = Acceptance(by_position=(acceptance,))
        costs = round_costs(
            TARGET, DRAFT, machine(FLAT, host=HOST), context=0.0, draft_lengths=range(1, 9)
        )
        tokens = [at.tokens_per_pass(k) for k in range(1, 9)]
        assert np.all(costs.speedup(at) <= np.array(tokens) * (1 + 1e-9))
