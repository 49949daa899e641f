"""Progress: limits, conversions that round-trip, and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError
from model.progress.acceptance import (
    Acceptance,
    from_accepted_fraction,
    from_draft_share,
    from_survival,
    from_tokens_per_pass,
    tokens_per_pass,
)

probabilities = st.floats(min_value=0.0, max_value=1.0)
lengths = st.integers(min_value=1, max_value=16)


class TestLimits:
    """What no draft, a useless draft and a perfect draft commit."""

    @given(lengths)
    def test_a_useless_draft_yields_the_targets_own_token(self, k: int) -> None:
        assert Acceptance(by_position=(0.0,)).tokens_per_pass(k) == 1.0

    @given(lengths)
    def test_a_perfect_draft_yields_all_and_the_bonus(self, k: int) -> None:
        assert Acceptance(by_position=(1.0,)).tokens_per_pass(k) == k + 1
        assert float(tokens_per_pass(1.0, k)) == k + 1

    @given(probabilities)
    def test_no_draft_is_one_token(self, acceptance: float) -> None:
        assert float(tokens_per_pass(acceptance, 0)) == pytest.approx(1.0)

    @given(st.floats(min_value=0.0, max_value=1e-5), lengths)
    def test_the_closed_form_keeps_its_digits_near_one(self, gap: float, k: int) -> None:
        exact = sum((1.0 - gap) ** j for j in range(k + 1))
        assert float(tokens_per_pass(1.0 - gap, k)) == pytest.approx(exact, rel=1e-9)

    @given(probabilities, lengths)
    def test_positions_with_one_rate_are_the_closed_form(self, rate: float, k: int) -> None:
        by_position = Acceptance(by_position=(rate,)).tokens_per_pass(k)
        assert by_position == pytest.approx(float(tokens_per_pass(rate, k)), rel=1e-9)


class TestConversions:
    """Four names, one acceptance."""

    def test_worked_numbers(self) -> None:
        """alpha = 0.8 and k = 4: 3.36 tokens per pass, 0.590 of drafted, 0.703 of output."""
        assert float(tokens_per_pass(0.8, 4)) == pytest.approx(3.3616)
        assert from_accepted_fraction(0.5904, 4) == pytest.approx(0.8, rel=1e-9)
        assert from_draft_share(2.3616 / 3.3616, 4) == pytest.approx(0.8, rel=1e-9)

    @given(st.floats(min_value=0.01, max_value=0.999), lengths)
    def test_round_trips(self, acceptance: float, k: int) -> None:
        tokens = float(tokens_per_pass(acceptance, k))
        assert from_tokens_per_pass(tokens, k) == pytest.approx(acceptance, abs=1e-7)
        assert from_accepted_fraction((tokens - 1) / k, k) == pytest.approx(acceptance, abs=1e-7)
        assert from_draft_share((tokens - 1) / tokens, k) == pytest.approx(acceptance, abs=1e-7)

    @pytest.mark.parametrize("k", range(1, 65))
    def test_the_largest_value_of_every_name_is_certainty(self, k: int) -> None:
        assert from_draft_share(k / (k + 1), k) == pytest.approx(1.0, abs=1e-12)
        assert from_accepted_fraction(1.0, k) == 1.0
        assert from_tokens_per_pass(k + 1.0, k) == 1.0

    @pytest.mark.parametrize(
        ("convert", "value", "line"),
        [
            (from_tokens_per_pass, 6.0, "6 tokens per pass: is impossible with draft length 4"),
            (from_tokens_per_pass, 0.5, "0.5 tokens per pass: is impossible"),
            (from_accepted_fraction, 1.2, "accepted fraction 1.2: is not a share"),
            (from_draft_share, 0.9, "draft share 0.9: is impossible with draft length 4"),
        ],
    )
    def test_numbers_that_no_acceptance_gives_are_refused(
        self, convert: object, value: float, line: str
    ) -> None:
        assert callable(convert)
        with pytest.raises(InputError, match=line):
            convert(value, 4)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_acceptance_outside_its_range_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="is not a probability"):
        Acceptance(by_position=(value,))


class TestSurvival:
    """Shares of rounds that got to each depth."""

    @given(st.lists(st.floats(min_value=0.001, max_value=1.0), min_size=1, max_size=8))
    def test_round_trip(self, rates: list[float]) -> None:
        k = len(rates)
        shares = Acceptance(by_position=tuple(rates)).survival(k).tolist()
        assert from_survival(shares).by_position == pytest.approx(rates, rel=1e-9)

    def test_after_a_position_that_never_passes(self) -> None:
        assert from_survival((0.5, 0.0, 0.0)).by_position == (0.5, 0.0, 0.0)

    @pytest.mark.parametrize(
        ("shares", "line"),
        [
            ((0.5, 0.6), "survival 0.6: is not a share of the 0.5 before it"),
            ((1.1,), "survival 1.1: is not a share of the 1 before it"),
            ((float("nan"),), "survival nan: is not a share"),
            ((), "acceptance: has no position"),
        ],
    )
    def test_refusals(self, shares: tuple[float, ...], line: str) -> None:
        with pytest.raises(InputError, match=line):
            from_survival(shares)
