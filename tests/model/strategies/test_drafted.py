"""Rounds of draft and verify: what holds of each, limits, bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.cache_growth import growth_s
from model.cost.forward import forward_pass
from model.cost.pipeline import awaited_s
from model.errors import InputError
from model.machine.row_law import RowLaw
from model.progress.acceptance import Acceptance
from model.strategies.drafted import AbstractDrafted
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative
from tests.model.drafts import CatchingUp, FreeDraft
from tests.model.machines import FULL, HOST, STATE, block, flat_law, machine, network, small

DRAFT = small("bf16", num_hidden_layers=1)
TARGET = small("bf16", num_hidden_layers=8)
FLAT = flat_law(bandwidth=1e9)
TILED = flat_law(bandwidth=1e10, flops=1e11, tile_rows=5.0)
LINEAR = flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0)

rates = st.floats(min_value=0, max_value=1)
acceptances = st.lists(rates, min_size=1, max_size=6).map(
    lambda by_position: Acceptance(by_position=tuple(by_position))
)
lengths = st.integers(min_value=1, max_value=12)
contexts = st.integers(min_value=0, max_value=20_000)
laws = st.sampled_from([FLAT, TILED, LINEAR])


def drafted_by(acceptance: Acceptance, length: int, sequences: int = 1) -> list[AbstractDrafted]:
    """One strategy of each rule of catching up."""
    return [
        FreeDraft(draft_length=length, acceptance=acceptance, sequences=sequences),
        Speculative(draft=DRAFT, draft_length=length, acceptance=acceptance, sequences=sequences),
        CatchingUp(head=DRAFT, draft_length=length, acceptance=acceptance, sequences=sequences),
    ]


class TestRounds:
    """What holds of every round."""

    @given(acceptances, lengths, contexts, laws, st.integers(min_value=1, max_value=8))
    def test_parts_sum_and_lie_between_the_bounds(
        self, acceptance: Acceptance, length: int, context: int, law: RowLaw, sequences: int
    ) -> None:
        here = machine(law, host=HOST)
        for strategy in drafted_by(acceptance, length, sequences):
            found = strategy.round(TARGET, here, context)
            total_s = sum(float(part_s) for _, part_s in found.parts_s)
            assert total_s == pytest.approx(float(found.round_s), rel=1e-12)
            assert all(float(part_s) >= -1e-12 for _, part_s in found.parts_s)
            assert float(found.lower_s) <= total_s * (1 + 1e-9)
            assert total_s <= float(found.upper_s) * (1 + 1e-9)

    @given(acceptances, lengths, contexts, laws)
    def test_no_speedup_exceeds_the_tokens_of_a_pass(
        self, acceptance: Acceptance, length: int, context: int, law: RowLaw
    ) -> None:
        """More rows never cost less here, so a verify pass costs a plain token at least."""
        here = machine(law, host=HOST)
        plain_s = float(Plain().round(TARGET, here, context).round_s)
        for strategy in drafted_by(acceptance, length):
            tokens = strategy.tokens_per_pass
            round_s = float(strategy.round(TARGET, here, context).round_s)
            assert tokens * plain_s / round_s <= tokens * (1 + 1e-9)

    @given(lengths, contexts)
    def test_a_free_draft_that_is_never_right_is_awaited_plain_decoding(
        self, length: int, context: int
    ) -> None:
        """Rows are free on a flat machine, so only waiting for the token remains."""
        here = machine(FLAT, host=HOST)
        never = FreeDraft(draft_length=length, acceptance=Acceptance(by_position=(0.0,)))
        one = forward_pass(TARGET, here, rows=1, context=context)
        # Several rows meet every context anew, which has to be planned.
        planned = replace(one, build_s=one.build_s + HOST.reshape_s)
        expected_s = float(awaited_s([planned], HOST.sync_s))
        expected_s += float(growth_s(TARGET, here, context=context))
        assert never.tokens_per_pass == 1.0
        assert float(never.round(TARGET, here, context).round_s) == pytest.approx(expected_s)

    @given(lengths, contexts)
    def test_a_free_draft_that_is_always_right_multiplies_speed_by_its_length(
        self, length: int, context: int
    ) -> None:
        here = machine(FLAT)
        always = FreeDraft(draft_length=length, acceptance=Acceptance(by_position=(1.0,)))
        pass_s = float(forward_pass(TARGET, here, rows=1, context=context).device_s)
        room_s = float(growth_s(TARGET, here, context=context))
        assert always.tokens_per_pass == length + 1
        assert float(always.round(TARGET, here, context).round_s) == pytest.approx(
            pass_s + (length + 1) * room_s
        )

    @given(acceptances, lengths, contexts)
    def test_rounds_do_not_depend_on_the_acceptance(
        self, acceptance: Acceptance, length: int, context: int
    ) -> None:
        here = machine(TILED, host=HOST)
        never = Acceptance(by_position=(0.0,))
        for one, other in zip(
            drafted_by(acceptance, length), drafted_by(never, length), strict=True
        ):
            times = [
                [float(each.round_s) for each in strategy.rounds(TARGET, here, context)]
                for strategy in (one, other)
            ]
            assert times[0] == times[1]
            assert len(times[0]) == length + 1

    @given(acceptances, lengths, st.lists(contexts, min_size=1, max_size=4))
    def test_arrays_of_contexts_equal_scalar_calls(
        self, acceptance: Acceptance, length: int, asked: list[int]
    ) -> None:
        here = machine(TILED, host=HOST)
        target = network(*(block(FULL), block(STATE)) * 4)
        for strategy in drafted_by(acceptance, length):
            together = strategy.round(target, here, np.array(asked, dtype=float))
            for name in ("round_s", "lower_s", "upper_s"):
                np.testing.assert_allclose(
                    np.broadcast_to(getattr(together, name), len(asked)),
                    [float(getattr(strategy.round(target, here, c), name)) for c in asked],
                    rtol=1e-12,
                )

    @given(acceptances, lengths, contexts)
    def test_a_batch_of_one_is_no_batch(
        self, acceptance: Acceptance, length: int, context: int
    ) -> None:
        here = machine(TILED, host=HOST)
        strategy = Speculative(draft=DRAFT, draft_length=length, acceptance=acceptance)
        one = replace(strategy, sequences=1)
        assert one == strategy
        assert "batch" not in one.settings
        assert float(one.round(TARGET, here, context).round_s) > 0


class TestInput:
    """Refusals."""

    @pytest.mark.parametrize("length", [0, -1, 65])
    def test_a_draft_length_no_round_has(self, length: int) -> None:
        line = (
            f"^draft length {length}: is not a length a round can have; "
            "give a whole number from 1 to 64$"
        )
        with pytest.raises(InputError, match=line):
            FreeDraft(draft_length=length, acceptance=Acceptance(by_position=(0.5,)))

    @pytest.mark.parametrize("sequences", [0, -1, 1025])
    def test_a_batch_that_cannot_be(self, sequences: int) -> None:
        with pytest.raises(InputError, match=f"^batch {sequences}: is out of range; give a whole"):
            FreeDraft(
                draft_length=1, acceptance=Acceptance(by_position=(0.5,)), sequences=sequences
            )

    def test_a_changed_length_is_checked_too(self) -> None:
        free = FreeDraft(draft_length=1, acceptance=Acceptance(by_position=(0.5,)))
        assert free.with_length(3).draft_length == 3
        with pytest.raises(InputError, match=r"^draft length 0: "):
            free.with_length(0)


def test_a_state_that_cannot_be_rewound_is_said() -> None:
    recurrent = network(block(STATE), name="recurrent")
    free = FreeDraft(draft_length=1, acceptance=Acceptance(by_position=(0.5,)))
    assert free.rewind_warnings(TARGET) == ()
    (line,) = free.rewind_warnings(TARGET, recurrent)
    assert line.startswith("recurrent has recurrent layers: mlx-lm cannot take rejected tokens")
