"""Trees of drafts: how many rows they have, and that one beam is the chain to the last digit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.forward import forward_pass
from model.errors import InputError
from model.network.draft_head import HeadKind
from model.progress.acceptance import from_tokens_per_pass
from model.strategies.draft_head import TrainedHead
from model.strategies.token_tree import CHAIN, MAX_BEAMS, TokenTree
from tests.model.machines import flat_law, machine
from tests.model.strategies.test_draft_heads import (
    BUSY,
    CONFIGS,
    FLAT,
    HOST,
    LINEAR,
    TARGET,
    at,
    toy,
    trained,
)

BEAMS = st.integers(min_value=1, max_value=8)
LENGTHS = st.integers(min_value=1, max_value=8)


def tree(kind: str, draft_length: int, beams: int, rows: int | None = None) -> TrainedHead:
    grown = TokenTree(beams=beams, stated_rows=rows)
    return replace(trained(kind, draft_length, 0.5), tree=grown)


class TestRows:
    """Between beams that share all they can and beams that share nothing."""

    @given(LENGTHS, BEAMS)
    def test_sharing_the_last_token_saves_its_copies(self, length: int, beams: int) -> None:
        grown = TokenTree(beams=beams)
        apart = grown.rows(length, shares_last_token=False)
        shared = grown.rows(length, shares_last_token=True)
        assert apart - shared == beams - 1
        assert length + beams <= shared <= apart

    @given(LENGTHS)
    def test_a_chain_has_its_tokens_and_the_one_before(self, length: int) -> None:
        assert CHAIN.rows(length, shares_last_token=True) == length + 1
        assert CHAIN.rows(length, shares_last_token=False) == length + 1

    @given(LENGTHS, BEAMS, st.integers(min_value=-3, max_value=90))
    def test_stated_rows_are_held_or_refused(self, length: int, beams: int, rows: int) -> None:
        grown = TokenTree(beams=beams, stated_rows=rows)
        if length + beams <= rows <= beams * (length + 1):
            assert grown.rows(length, shares_last_token=True) == rows
        else:
            with pytest.raises(InputError, match="cannot hold"):
                grown.rows(length, shares_last_token=True)

    def test_two_beams_that_differ_in_their_last_token_are_the_smallest_tree(self) -> None:
        """One shared token and two last ones, behind the token before them: four rows."""
        smallest = TokenTree(beams=2, stated_rows=4)
        assert smallest.rows(2, shares_last_token=True) == 4

    @pytest.mark.parametrize("beams", [0, -1, MAX_BEAMS + 1])
    def test_a_number_of_beams_out_of_range_is_refused(self, beams: int) -> None:
        with pytest.raises(InputError, match="from 1 to 64"):
            TokenTree(beams=beams)

    def test_a_head_refuses_rows_that_its_tree_cannot_have(self) -> None:
        with pytest.raises(InputError, match="3 beams of 4 draft tokens"):
            tree("eagle3", 4, 3, rows=6)

    def test_redrafter_packs_the_last_token_with_every_beam(self) -> None:
        """tree_attention.pack: beam width times beam length, which counts that token."""
        assert tree("redrafter", 3, 4).verified_rows == 16
        assert tree("eagle3", 3, 4).verified_rows == 13
        assert tree("mtp", 3, 4).verified_rows == 13


class TestOneBeam:
    """A tree of one beam is a chain."""

    @pytest.mark.parametrize("kind", CONFIGS)
    @pytest.mark.parametrize("length", [1, 4])
    def test_one_beam_is_the_chain_to_the_last_digit(self, kind: str, length: int) -> None:
        here = machine(LINEAR, host=HOST, device=BUSY)
        chain, one = trained(kind, length, 0.7), tree(kind, length, 1, rows=length + 1)
        one = one.with_acceptance(at(0.7))
        ours, theirs = (each.round(TARGET, here, 300.0) for each in (one, chain))
        assert ours.parts_s == theirs.parts_s
        assert (ours.lower_s, ours.upper_s) == (theirs.lower_s, theirs.upper_s)
        assert one.settings == chain.settings
        assert (one.rows, one.tokens_per_pass) == (chain.rows, chain.tokens_per_pass)


class TestRounds:
    """What beams cost."""

    @pytest.mark.parametrize("kind", CONFIGS)
    def test_beams_are_free_where_rows_are(self, kind: str) -> None:
        here = machine(FLAT)
        few, many = (tree(kind, 3, beams).round(TARGET, here, 0.0).round_s for beams in (1, 8))
        assert float(few) == pytest.approx(float(many))

    @given(st.sampled_from(list(CONFIGS)), LENGTHS, BEAMS)
    def test_a_further_beam_never_costs_less(self, kind: str, length: int, beams: int) -> None:
        here = machine(LINEAR, host=HOST, device=BUSY)
        fewer, more = (
            float(tree(kind, length, each).round(TARGET, here, 64.0).round_s)
            for each in (beams, beams + 1)
        )
        assert fewer < more

    def test_packing_saves_the_rows_that_it_shares(self) -> None:
        """On a machine that only multiplies, verifying costs in proportion to its rows."""
        here = machine(flat_law(bandwidth=1e30, flops=1e12, tile_rows=1.0))
        times = [
            dict(tree("eagle3", 4, 3, rows=rows).round(TARGET, here, 0.0).parts_s)["arithmetic"]
            for rows in (7, 14)
        ]
        assert float(times[1]) == pytest.approx(2.0 * float(times[0]))

    def test_the_drafts_are_a_hook_and_passes_of_every_beam(self) -> None:
        here = machine(LINEAR)
        strategy = tree("eagle3", 4, 3).with_acceptance(at(0.0))
        hook = strategy.draft_pass(TARGET, here, 64.0, 1).device_s
        later = strategy.later_pass(TARGET, here, 64.0, 3).device_s
        parts = dict(strategy.round(TARGET, here, 64.0).parts_s)
        assert float(parts["draft"]) == pytest.approx(float(hook) + 3 * float(later))

    def test_every_pass_of_redrafter_runs_all_beams(self) -> None:
        here = machine(LINEAR)
        strategy = tree("redrafter", 4, 3)
        each = strategy.draft_pass(TARGET, here, 64.0, 3).device_s
        parts = dict(strategy.round(TARGET, here, 64.0).parts_s)
        assert float(parts["draft"]) == pytest.approx(4 * float(each))

    def test_the_verify_pass_is_the_tree_in_every_sequence(self) -> None:
        here = machine(LINEAR)
        strategy = replace(tree("mtp", 3, 4), sequences=2)
        verify = strategy.verify_pass(TARGET, here, 64.0)
        alone = forward_pass(TARGET, here, rows=13, context=64.0, sequences=2)
        assert float(verify.device_s) == float(alone.device_s)
        assert strategy.rows == 26

    def test_redrafter_waits_twice_and_others_once(self) -> None:
        here = machine(FLAT, host=HOST)
        waits = {kind: dict(tree(kind, 3, 2).round(TARGET, here, 0.0).parts_s) for kind in CONFIGS}
        assert toy(CONFIGS["redrafter"])[1].kind is HeadKind.REDRAFTER
        assert waits["redrafter"]["sync"] == 2 * HOST.sync_s
        assert waits["eagle3"]["sync"] == waits["mtp"]["sync"] == HOST.sync_s


class TestProgress:
    """Tokens per pass are what is known of a tree."""

    def test_tokens_per_pass_are_given_back(self) -> None:
        rate = from_tokens_per_pass(2.2, 3)
        assert tree("redrafter", 3, 3).with_acceptance(at(rate)).tokens_per_pass == pytest.approx(
            2.2
        )

    def test_settings_show_the_tree_and_no_acceptance_of_a_chain(self) -> None:
        assert tree("redrafter", 3, 2).settings == {
            "head": "toy head",
            "head_format": "bf16",
            "draft_length": 3,
            "beams": 2,
            "verified_rows": 8,
        }
