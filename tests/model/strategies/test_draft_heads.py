"""Strategies of trained heads: rows and bytes of each pass, rounds in parts, limits, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import catalog
from model.cost.forward import Bound, forward_pass
from model.errors import InputError
from model.machine.overheads import Device, Host
from model.network.checkpoint import Checkpoint
from model.network.config.heads import read_head
from model.network.draft_head import DraftHead
from model.network.head_target import load_head
from model.network.target import load_target
from model.network.weight_format import weight_format
from model.prediction.round_costs import round_costs
from model.progress.acceptance import Acceptance
from model.strategies.block_drafter import BlockDrafter, keys_and_values
from model.strategies.draft_head import TrainedHead
from model.strategies.drafted import AbstractDrafted
from tests.model.machines import NO_DEVICE, flat_law, machine, small

BANDWIDTH = 1e9
FLAT = flat_law(bandwidth=BANDWIDTH)
LINEAR = flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0)
HOST = Host(
    build_layer_s=1e-5,
    build_pass_s=2e-5,
    submit_layer_s=5e-6,
    submit_pass_s=5e-6,
    sync_s=1e-4,
    reshape_s=3e-4,
)
BUSY = Device(
    kernel_s=1e-6, layer_s=1e-5, more_rows_layer_s=0.0, element_s=1e-12, pass_s=1e-5, logit_s=1e-11
)
TARGET = small("bf16", num_hidden_layers=8)
SIZES: dict[str, object] = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 1024,
}
CONFIGS: dict[str, dict[str, object]] = {
    "mtp": {"model_type": "qwen3_5_mtp", "text_config": {**SIZES, "model_type": "qwen3_5_text"}},
    "eagle3": {
        **SIZES,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLMEagle3"],
        "num_hidden_layers": 1,
        "draft_vocab_size": 512,
    },
    "redrafter": {
        "model_type": "recurrent_drafting_drafter",
        "hidden_size": 256,
        "vocab_size": 1024,
        "exit_dim": 512,
        "num_draft_layers": 2,
    },
}
BLOCK: dict[str, object] = {
    **SIZES,
    "model_type": "qwen3",
    "num_hidden_layers": 2,
    "block_size": 16,
    "target_layer_ids": [1, 3, 5],
}
BLOCKS: dict[str, dict[str, object]] = {
    "dflash": {**BLOCK, "architectures": ["DFlashDraftModel"]},
    "dspark": {**BLOCK, "architectures": ["DSparkDraftModel"], "markov_rank": 64},
}


def toy(config: dict[str, object]) -> tuple[Checkpoint, DraftHead]:
    design = read_head(config, name="toy head", source="toy.json")
    head = Checkpoint(architecture=design.architecture, weight_format=weight_format("bf16"))
    return head, design


def at(acceptance: float) -> Acceptance:
    return Acceptance(by_position=(acceptance,))


def trained(kind: str, draft_length: int, acceptance: float) -> TrainedHead:
    head, design = toy(CONFIGS[kind])
    return TrainedHead(
        head=head, design=design, draft_length=draft_length, acceptance=at(acceptance)
    )


def block(kind: str, draft_length: int, acceptance: float, rows: int | None = None) -> BlockDrafter:
    head, design = toy(BLOCKS[kind])
    return BlockDrafter(
        head=head,
        design=design,
        draft_length=draft_length,
        acceptance=at(acceptance),
        block_rows=rows,
    )


def any_head(kind: str, draft_length: int, acceptance: float) -> AbstractDrafted:
    if kind in CONFIGS:
        return trained(kind, draft_length, acceptance)
    return block(kind, draft_length, acceptance)


def draft_s(strategy: AbstractDrafted, context: float = 0.0) -> float:
    parts = dict(strategy.round(TARGET, machine(FLAT), context).parts_s)
    return float(parts["draft"])


EVERY_KIND = [*CONFIGS, *BLOCKS]


class TestRows:
    """Rows of the first pass, after n accepted tokens."""

    def test_eagle_replays_every_accepted_token(self) -> None:
        strategy = trained("eagle3", 4, 0.5)
        assert [strategy.first_rows(n) for n in range(5)] == [1, 2, 3, 4, 5]
        assert strategy.later_rows == (1, 1, 1)

    def test_mtp_keeps_what_was_accepted(self) -> None:
        strategy = trained("mtp", 4, 0.5)
        assert [strategy.first_rows(n) for n in range(5)] == [1, 1, 1, 1, 2]
        assert trained("mtp", 1, 0.5).later_rows == ()

    def test_a_block_drafter_takes_in_the_states_of_accepted_tokens(self) -> None:
        strategy = block("dflash", 3, 0.5)
        assert [strategy.first_rows(n) for n in range(4)] == [1, 2, 3, 4]
        assert strategy.later_rows == ()

    def test_a_block_is_as_long_as_the_round_asks(self) -> None:
        """DFlash puts the last token before its drafts; DSpark drafts from that token's row."""
        assert block("dflash", 7, 0.5).fitted_rows == 8
        assert block("dspark", 7, 0.5).fitted_rows == 7


class TestBytes:
    """On a machine that only reads, a pass is its bytes."""

    def test_an_mtp_pass_reads_head_and_borrowed_table(self) -> None:
        target = load_target("qwen3.5-4b", "4bit")
        head, design = load_head("qwen3.5-4b-mtp", "bf16", target)
        strategy = TrainedHead(head=head, design=design, draft_length=3, acceptance=at(0.5))
        cost = strategy.draft_pass(target, machine(FLAT), 1000.0, 1)
        # Matrices in bf16 and the target's table in 4 bits; norms are not matrices.
        matrices = 2 * (120_599_552 - 5 * 2560 - 2 * 256) + 248_320 * 2560 * 9 // 16
        assert float(cost.weights_s) * BANDWIDTH == pytest.approx(matrices)
        # Keys and values of 4 heads of 256.
        assert float(cost.kv_s) * BANDWIDTH == pytest.approx(1000 * 2 * 4 * 256 * 2)

    def test_only_the_hook_of_eagle_reads_fc(self) -> None:
        target = load_target("llama-3.1-8b", "4bit")
        head, design = load_head("llama-3.1-8b-eagle3", "bf16", target)
        strategy = TrainedHead(head=head, design=design, draft_length=3, acceptance=at(0.5))
        here = machine(FLAT)
        hook, later = (
            strategy.draft_pass(target, here, 0.0, 1),
            strategy.later_pass(target, here, 0.0, 1),
        )
        assert float(hook.weights_s) * BANDWIDTH == pytest.approx(849_379_328 - 2 * 4 * 4096)
        assert float(later.weights_s) * BANDWIDTH == pytest.approx(748_716_032 - 2 * 4 * 4096)

    def test_a_dflash_pass_reads_keys_and_values_twice(self) -> None:
        target = load_target("qwen3-4b", "4bit")
        head, design = load_head("qwen3-4b-dflash", "bf16", target)
        strategy = BlockDrafter(head=head, design=design, draft_length=15, acceptance=at(0.5))
        cost = strategy.draft_pass(target, machine(FLAT), 0.0, 4)
        layer = 2560 * (4096 + 2 * 1024 + 4096) + 3 * 2560 * 9728
        states = 5 * 2560 * 2560 + 5 * 2 * 2560 * 1024
        table = 151_936 * 2560 * 9 // 16
        expected = 2 * (5 * layer + states) + table
        assert float(cost.weights_s) * BANDWIDTH == pytest.approx(expected)

    def test_dspark_reads_its_correction_for_each_draft_token(self) -> None:
        """The Markov head has 1024 rows of 64 numbers; the block itself reads the same bytes."""
        one, five = (draft_s(block("dspark", k, 0.0)) for k in (1, 5))
        assert (five - one) * BANDWIDTH == pytest.approx(4 * 2 * 1024 * 64)

    def test_a_borrowed_table_is_resident_once(self) -> None:
        target = load_target("qwen3-4b", "4bit")
        head, design = load_head("qwen3-4b-dflash", "bf16", target)
        strategy = BlockDrafter(head=head, design=design, draft_length=15, acceptance=at(0.5))
        residents = strategy.residents(target)
        assert (
            sum(each.total_bytes for each, _ in residents) == target.total_bytes + 2 * 537_427_200
        )


class TestLimits:
    """What the equations say at their ends."""

    @pytest.mark.parametrize("kind", EVERY_KIND)
    def test_at_no_acceptance_a_round_commits_one_token(self, kind: str) -> None:
        assert any_head(kind, 4, 0.0).tokens_per_pass == 1.0
        assert any_head(kind, 4, 1.0).tokens_per_pass == 5.0

    def test_a_block_reads_the_same_whatever_the_draft_length(self) -> None:
        assert draft_s(block("dflash", 1, 0.5)) == pytest.approx(draft_s(block("dflash", 15, 0.5)))

    def test_a_block_of_stated_rows_costs_the_same_whatever_the_draft_length(self) -> None:
        here = machine(LINEAR, device=BUSY)
        few, many = (
            block("dflash", k, 0.0, rows=16).draft_pass(TARGET, here, 64.0, 1) for k in (1, 15)
        )
        assert float(few.device_s) == float(many.device_s)
        fitted = block("dflash", 1, 0.0).draft_pass(TARGET, here, 64.0, 1)
        assert float(fitted.device_s) < float(few.device_s)

    @pytest.mark.parametrize("kind", ["eagle3", "dflash", "dspark"])
    def test_the_hook_grows_with_acceptance(self, kind: str) -> None:
        here = machine(LINEAR)
        drafts = [
            float(dict(any_head(kind, 4, rate).round(TARGET, here, 0.0).parts_s)["draft"])
            for rate in (0.0, 0.5, 1.0)
        ]
        assert drafts[0] < drafts[1] < drafts[2]

    def test_a_head_without_states_to_keep_costs_the_same_at_any_acceptance(self) -> None:
        assert draft_s(trained("redrafter", 4, 0.0)) == pytest.approx(
            draft_s(trained("redrafter", 4, 1.0))
        )

    def test_a_token_drafter_drafts_one_token_with_its_hook_alone(self) -> None:
        strategy = trained("mtp", 1, 0.0)
        hook = strategy.draft_pass(TARGET, machine(FLAT), 64.0, 1)
        assert draft_s(strategy, 64.0) == pytest.approx(float(hook.device_s))

    @pytest.mark.parametrize("kind", CONFIGS)
    def test_each_further_draft_token_is_one_further_pass(self, kind: str) -> None:
        here = machine(FLAT)
        strategy = trained(kind, 3, 0.0)
        later = float(strategy.later_pass(TARGET, here, 0.0, 1).device_s)
        assert draft_s(trained(kind, 4, 0.0)) - draft_s(strategy) == pytest.approx(later)


class TestRounds:
    """Time in named parts."""

    @given(
        st.sampled_from(EVERY_KIND),
        st.integers(min_value=1, max_value=15),
        st.floats(min_value=0, max_value=1),
    )
    def test_a_round_is_the_sum_of_its_parts(self, kind: str, k: int, acceptance: float) -> None:
        here = machine(FLAT, host=HOST, device=BUSY)
        round_ = any_head(kind, k, acceptance).round(TARGET, here, 64.0)
        parts = {name: float(part_s) for name, part_s in round_.parts_s}
        verify = forward_pass(TARGET, here, rows=k + 1, context=64.0)
        assert sum(parts.values()) == pytest.approx(float(round_.round_s), rel=1e-12)
        assert parts["weights"] == pytest.approx(float(verify.weights_s))
        assert parts["host"] >= -1e-12
        assert float(round_.lower_s) <= float(round_.round_s) * (1 + 1e-9)
        assert float(round_.round_s) <= float(round_.upper_s) * (1 + 1e-9)

    @pytest.mark.parametrize("kind", EVERY_KIND)
    def test_an_array_of_contexts_is_each_of_them(self, kind: str) -> None:
        here = machine(FLAT, host=HOST, device=BUSY)
        contexts = np.array([0.0, 100.0, 5000.0])
        strategy = any_head(kind, 3, 0.6)
        swept = np.asarray(strategy.round(TARGET, here, contexts).round_s)
        each = [float(strategy.round(TARGET, here, float(c)).round_s) for c in contexts]
        assert swept.tolist() == pytest.approx(each)

    @pytest.mark.parametrize("kind", EVERY_KIND)
    def test_the_planner_prices_the_rounds_of_the_prediction(self, kind: str) -> None:
        here = machine(LINEAR, host=HOST, device=BUSY)
        strategy = any_head(kind, 3, 0.6)
        costs = round_costs(strategy, TARGET, here, context=64.0, draft_lengths=(3,))
        round_s = float(strategy.round(TARGET, here, 64.0).round_s)
        expected = strategy.tokens_per_pass * float(costs.plain_s) / round_s
        assert float(costs.speedup(strategy.acceptance)[0]) == pytest.approx(expected)

    def test_a_head_as_large_as_its_target_is_bound_by_the_draft(self) -> None:
        strategy = trained("redrafter", 15, 0.0)
        tiny = small("bf16", num_hidden_layers=1)
        assert strategy.round(tiny, machine(FLAT), 0.0).bound is Bound.DRAFT

    def test_a_block_pass_counts_its_kernels_and_samples_each_correction(self) -> None:
        """fc, and keys and values of each of 2 layers; DSpark adds a product for each token."""
        counting = replace(NO_DEVICE, kernel_s=1.0, logit_s=1.0)
        here = machine(flat_law(bandwidth=1e30), device=counting)
        for kind, corrections in (("dflash", 0), ("dspark", 3)):
            strategy = block(kind, 3, 0.0)
            cost = strategy.draft_pass(TARGET, here, 0.0, 1)
            # The layers have four products and attention each, and the logits one.
            assert float(cost.dispatch_s) == 1 + 2 * 5 + 1 + 2 + corrections
            # Neither makes logits of more rows than it drafts.
            assert float(cost.arithmetic_s) == pytest.approx((3 + corrections) * 1024)

    def test_a_filled_block_makes_logits_of_its_masks_or_of_the_draft(self) -> None:
        """DFlash of every mask, DSpark of the rows whose logits it corrects."""
        assert block("dflash", 2, 0.0, rows=16).head_rows == 15
        assert block("dspark", 2, 0.0, rows=7).head_rows == 2


class TestPrediction:
    """What a person sees of a strategy."""

    def test_settings_name_head_and_format(self) -> None:
        assert trained("mtp", 2, 0.7).settings == {
            "head": "toy head",
            "head_format": "bf16",
            "draft_length": 2,
            "acceptance": [0.7],
        }
        assert block("dflash", 2, 0.7, rows=16).settings["block_rows"] == 16
        assert "block_rows" not in block("dflash", 2, 0.7).settings

    def test_a_recurrent_target_warns(self) -> None:
        target = load_target("qwen3.5-4b", "4bit")
        head, design = load_head("qwen3.5-4b-mtp", "bf16", target)
        strategy = TrainedHead(head=head, design=design, draft_length=2, acceptance=at(0.7))
        assert any("qwen3.5-4b has recurrent layers" in line for line in strategy.warnings(target))
        assert trained("mtp", 2, 0.7).warnings(TARGET) == ()

    def test_what_is_not_known_of_a_head_is_said(self) -> None:
        assert trained("redrafter", 2, 0.5).warnings(TARGET) == ()
        head, design = toy({**BLOCKS["dflash"], "block_size": None})
        unstated = BlockDrafter(head=head, design=design, draft_length=40, acceptance=at(0.5))
        assert unstated.warnings(TARGET) == ("toy head does not state how long its blocks are",)

    def test_a_cache_of_its_own_makes_the_head_grow(self) -> None:
        here = machine(FLAT)
        assert float(trained("redrafter", 2, 0.5).draft_growth_s(TARGET, here, 1000.0)) == 0.0
        # 1000 keys and values of 2 heads of 64, read and written once in 256 tokens.
        grown_bytes = 1000 * 2 * 2 * 64 * 2
        grown_s = float(trained("mtp", 2, 0.5).draft_growth_s(TARGET, here, 1000.0))
        assert grown_s == pytest.approx(2 * grown_bytes / (256 * BANDWIDTH))


class TestRefusals:
    """One line each."""

    def test_a_draft_longer_than_the_block(self) -> None:
        with pytest.raises(InputError) as refused:
            block("dflash", 16, 0.5)
        assert str(refused.value) == (
            "draft length 16: is more than the 15 tokens that head toy head drafts in a block; "
            "give a whole number from 1 to 15"
        )
        assert block("dspark", 16, 0.5).rows == 17

    @pytest.mark.parametrize("kind", EVERY_KIND)
    def test_a_draft_length_no_round_has(self, kind: str) -> None:
        with pytest.raises(InputError, match="draft length 0: is not a length"):
            any_head(kind, 0, 0.5)

    def test_a_block_too_short_for_its_draft(self) -> None:
        with pytest.raises(InputError, match="block rows 4: are too few for a draft of 4 tokens"):
            block("dflash", 4, 0.5, rows=4)

    def test_a_head_of_the_other_kind(self) -> None:
        head, design = toy(BLOCKS["dflash"])
        with pytest.raises(InputError, match="toy head: drafts a block in one pass"):
            TrainedHead(head=head, design=design, draft_length=2, acceptance=at(0.5))
        head, design = toy(CONFIGS["mtp"])
        with pytest.raises(InputError, match="toy head: drafts token by token"):
            BlockDrafter(head=head, design=design, draft_length=2, acceptance=at(0.5))

    @pytest.mark.parametrize("kind", EVERY_KIND)
    def test_a_head_of_another_target(self, kind: str) -> None:
        stranger = small("bf16", vocab_size=2048)
        with pytest.raises(InputError, match="has a vocabulary of 1024 tokens, small has 2048"):
            any_head(kind, 2, 0.5).round(stranger, machine(FLAT), 0.0)


@pytest.mark.parametrize("name", [name for name in catalog.head_names() if "-d" in name])
def test_a_block_head_makes_what_it_caches_of_the_states(name: str) -> None:
    """Keys and values of every layer; Gemma's are one projection that is kept twice."""
    design = read_head(catalog.head_config(name), name=name, source=name)
    assert design.kind.drafts_blocks
    for layer in design.architecture.layers:
        assert layer.mixer is not None
        made = keys_and_values(layer)
        copies = 3 - len(made.matrices)
        assert copies * made.columns == layer.mixer.cached_elements_per_token()
        assert copies == (2 if name.startswith("gemma-4-12b") else 1)
