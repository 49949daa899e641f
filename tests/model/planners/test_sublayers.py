"""Plans of single sublayers on a network and a machine: times, promises, refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.cost.forward import forward_pass
from model.errors import InputError
from model.network.checkpoint import Overrides
from model.network.sublayers import Half, Sublayer, sublayers, without
from model.network.weight_format import weight_format
from model.planners.sublayers import (
    plan_sublayers,
    sublayer_times,
)
from model.progress.acceptance import Acceptance
from model.strategies.layer_skip import LayerSkip
from model.strategies.plain import Plain
from tests.model.machines import (
    FULL,
    LATENT,
    NO_DEVICE,
    STATE,
    WINDOWED,
    block,
    experts_of,
    flat_law,
    machine,
    network,
    small,
)

FLAT = machine(flat_law(bandwidth=1e9))
TARGET = small("bf16", num_hidden_layers=8)

MIXED = network(
    block(FULL),
    block(WINDOWED, experts_of(num_experts=8, top_k=2)),
    block(STATE),
    block(LATENT),
    block(FULL),
)


class TestTimes:
    """What a draft pass saves without a sublayer."""

    @given(
        st.frozensets(st.sampled_from(sublayers(MIXED.architecture)), max_size=9),
        st.integers(0, 20_000),
    )
    def test_savings_add_up_to_the_pass_that_remains(
        self, skipped: frozenset[Sublayer], context: int
    ) -> None:
        device = replace(NO_DEVICE, layer_s=1e-5, kernel_s=1e-6, element_s=1e-9, pass_s=1e-4)
        here = machine(flat_law(bandwidth=1e9, flops=1e11, tile_rows=5.0), device=device)
        times = sublayer_times(MIXED, here, context=context)
        whole_s, rest_s = (
            float(forward_pass(each, here, rows=1, context=context).device_s)
            for each in (MIXED, without(MIXED, skipped))
        )
        assert sum(times[each] for each in skipped) == pytest.approx(whole_s - rest_s)

    def test_layers_alike_but_for_their_formats_have_times_of_their_own(self) -> None:
        wide = {
            f"model.layers.1.{name}": weight_format("8bit")
            for name in ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
        }
        mixed = replace(small("4bit"), overrides=Overrides(wide))
        times = sublayer_times(mixed, FLAT, context=0)
        first, second = (times[Sublayer(layer=index, half=Half.MLP)] for index in (0, 1))
        assert second == pytest.approx(first * 8.5 / 4.5)


class TestPlans:
    """The planner on a network and a machine."""

    ALL = sublayers(TARGET.architecture)

    @settings(max_examples=25)
    @given(
        st.lists(st.floats(0.5, 1.0), min_size=16, max_size=16),
        st.integers(0, 20_000),
        st.integers(1, 6),
    )
    def test_the_promise_is_the_speed_of_the_draft_before_it_catches_up(
        self, factors: list[float], context: int, k: int
    ) -> None:
        """Where the host waits for nothing, rows are free and nothing makes room."""
        # No caches are copied on a machine whose attention is not bound by reading.
        law = flat_law(bandwidth=1e9)
        here = machine(law, attention=flat_law(bandwidth=math.inf, flops=1e11))
        plan = plan_sublayers(
            TARGET,
            here,
            context=context,
            acceptance_factors=dict(zip(self.ALL, factors, strict=True)),
            draft_lengths=(k,),
        )
        real = LayerSkip(
            skipped=plan.skipped,
            draft_length=k,
            acceptance=Acceptance(by_position=(plan.acceptance,)),
        )
        missed_s = float(real.rounds(TARGET, here, context)[0].round_s)
        assert plan.tokens_per_s == pytest.approx(real.tokens_per_pass / missed_s)
        plain_s = float(Plain().round(TARGET, here, context).round_s)
        assert plan.plain_tokens_per_s == pytest.approx(1 / plain_s)

    def test_attention_goes_first_when_the_context_is_long(self) -> None:
        """Equal losses. An MLP is 786,432 bytes; attention 393,216 and 512 a token.

        They are level at 768 tokens: MLPs are dearer before, attention after.
        """
        factors = dict.fromkeys(self.ALL, 0.9)
        for context, dearer in (
            (0, Half.MLP),
            (700, Half.MLP),
            (850, Half.MIXER),
            (10_000, Half.MIXER),
        ):
            for k in (1, 2, 4):
                plan = plan_sublayers(
                    TARGET, FLAT, context=context, acceptance_factors=factors, draft_lengths=(k,)
                )
                first = sum(each.half is dearer for each in plan.skipped)
                others = len(plan.skipped) - first
                assert first == 8 or (first > 0 and others == 0) or not plan.skipped
            alone = plan_sublayers(
                TARGET, FLAT, context=context, acceptance_factors=factors, draft_lengths=(1,)
            )
            assert alone.skipped

    def test_what_costs_no_acceptance_is_skipped_and_what_costs_all_is_not(self) -> None:
        free, fatal = self.ALL[3], self.ALL[8]
        plan = plan_sublayers(
            TARGET,
            FLAT,
            context=100,
            acceptance_factors={free: 1.0, fatal: 0.0},
            draft_lengths=(1, 2, 4),
        )
        assert plan.skipped == {free}
        assert plan.draft_length == 4
        assert plan.acceptance == 1.0

    @pytest.mark.parametrize("factor", [1.0, 0.999])
    def test_a_sublayer_is_left_to_draft_with(self, factor: float) -> None:
        """Almost no loss: all but one of the cheapest, attention at no context."""
        plan = plan_sublayers(
            TARGET,
            FLAT,
            context=0,
            acceptance_factors=dict.fromkeys(self.ALL, factor),
            draft_lengths=(4,),
        )
        assert len(plan.skipped) == 15
        (left,) = set(self.ALL) - plan.skipped
        assert left.half is Half.MIXER
        without(TARGET, plan.skipped)

    def test_without_acceptance_nothing_is_skipped(self) -> None:
        plan = plan_sublayers(TARGET, FLAT, context=0, acceptance_factors={}, draft_lengths=(1, 3))
        assert plan.skipped == frozenset()
        assert plan.acceptance == 1.0

    def test_a_cache_that_later_layers_read_is_kept(self) -> None:
        borrower = replace(FULL, owns_cache=False)
        lending = network(block(FULL), block(FULL), block(borrower), name="lending")
        factors = dict.fromkeys(sublayers(lending.architecture), 0.99)
        plan = plan_sublayers(
            lending, FLAT, context=5000, acceptance_factors=factors, draft_lengths=(2,)
        )
        assert Sublayer(layer=1, half=Half.MIXER) not in plan.skipped
        assert Sublayer(layer=0, half=Half.MIXER) in plan.skipped

    @pytest.mark.parametrize("factor", [-0.1, 1.1, float("nan")])
    def test_a_factor_that_is_no_probability_is_refused(self, factor: float) -> None:
        line = (
            f"^acceptance factor {factor:g} of mlp 0: is not a probability; "
            "give a number in \\[0, 1\\]$"
        )
        with pytest.raises(InputError, match=line):
            plan_sublayers(
                TARGET,
                FLAT,
                context=0,
                acceptance_factors={Sublayer(layer=0, half=Half.MLP): factor},
                draft_lengths=(1,),
            )

    def test_a_sublayer_that_is_not_there_is_refused(self) -> None:
        line = "^sublayer mlp of layer 8: is not in small; layers are numbered 0 to 7$"
        with pytest.raises(InputError, match=line):
            plan_sublayers(
                TARGET,
                FLAT,
                context=0,
                acceptance_factors={Sublayer(layer=8, half=Half.MLP): 0.9},
                draft_lengths=(1,),
            )
