from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibrate.environment import Environment
from calibrate.run_record import Run

ENVIRONMENT = Environment(
    device="metal",
    chip="Apple M3",
    architecture="applegpu_g15g",
    memory_bytes=16 * 2**30,
    recommended_working_set_bytes=None,
    os="macOS 15.6",
    python="3.11.7",
    mlx="0.32.4",
    mlx_lm="0.32.2",
    mlx_variables=(("MLX_MAX_OPS_PER_BUFFER", "40"),),
)
# Five steady rounds with two draft tokens each: 2, 0, 2, 1, 0 accepted.
SPECULATIVE = Run(
    id="a",
    date="2026-11-29T12:00:00+00:00",
    strategy="speculative",
    target="llama-3.1-8b",
    target_format="4bit",
    target_weights="real",
    draft="llama-3.2-1b",
    draft_format="4bit",
    draft_length=2,
    context_tokens=64,
    tokens=3,
    round_s=(9.0, 0.3, 0.1, 0.5, 0.2),
    accepted=(2, 0, 2, 1, 0),
    output=(5, 6, 7),
    matches_plain=None,
    peak_memory_bytes=5_000_000_000,
    environment=ENVIRONMENT,
)
PLAIN = replace(
    SPECULATIVE,
    strategy="plain",
    draft="",
    draft_format="",
    draft_length=0,
    round_s=(0.25, 0.2, 0.2, 0.2, 1.2),
    accepted=(0, 0, 0, 0, 0),
)


class TestStatistics:
    def test_counts(self) -> None:
        assert SPECULATIVE.drafted == 10
        assert SPECULATIVE.accepted_fraction == pytest.approx(0.5)
        assert SPECULATIVE.tokens_per_pass == pytest.approx(2.0)

    def test_acceptance_by_position_is_conditional(self) -> None:
        # 5 rounds reach the first draft token and 3 accept it; 3 reach the second, 2 accept it.
        assert SPECULATIVE.acceptance_by_position == pytest.approx((3 / 5, 2 / 3))

    def test_a_position_that_was_never_reached_has_no_rate(self) -> None:
        assert replace(SPECULATIVE, accepted=(0,) * 5).acceptance_by_position == (0.0,)

    def test_typical_round_weighs_the_quartiles_of_two_kinds_of_rounds(self) -> None:
        # After full acceptance: 0.3 and 0.5. After less: 0.1 and 0.2. The first is of no kind.
        assert SPECULATIVE.typical_round_s == pytest.approx(0.5 * 0.35 + 0.5 * 0.125)
        assert SPECULATIVE.tokens_per_s == pytest.approx(2.0 / 0.2375)

    def test_the_mean_counts_all_tokens_and_all_time(self) -> None:
        assert SPECULATIVE.mean_tokens_per_s == pytest.approx(10 / 10.1)

    def test_plain_decoding_is_one_token_a_pass(self) -> None:
        assert PLAIN.tokens_per_pass == 1.0
        assert PLAIN.accepted_fraction is None
        assert PLAIN.acceptance_by_position == ()

    def test_one_disturbed_round_moves_the_mean_alone(self) -> None:
        seconds = (*(0.2,) * 40, 5.0, *(0.2,) * 39)
        disturbed = replace(PLAIN, round_s=seconds, accepted=(0,) * 80)
        assert disturbed.tokens_per_s == pytest.approx(5.0)
        assert disturbed.mean_tokens_per_s == pytest.approx(80 / (79 * 0.2 + 5.0))

    def test_bursts_of_a_pipelined_loop_are_averaged_before_they_are_compared(self) -> None:
        """Tokens that arrive in pairs, 0 and 2 ms apart, take 1 ms each and not the least."""
        bursts = replace(PLAIN, round_s=(1e-9, 2e-3) * 40, accepted=(0,) * 80)
        assert bursts.typical_round_s == pytest.approx(1e-3, rel=1e-3)

    def test_a_single_round_is_its_own_type(self) -> None:
        assert replace(PLAIN, round_s=(0.5,), accepted=(0,)).tokens_per_s == pytest.approx(2.0)


OWN = Environment(
    device="cuda",
    chip="NVIDIA H200",
    architecture="sm_90",
    memory_bytes=150 * 10**9,
    recommended_working_set_bytes=None,
    os="Linux",
    python="3.12.3",
    mlx="0.32.4",
    mlx_lm="0.32.2",
    mlx_variables=(("MLX_CUDA_USE_CUDNN_SDPA", "0"),),
)
"""Where more rows than three leave the scores of attention in memory."""


def by_keys(accepted: tuple[int, ...], draft_length: int = 4) -> Run:
    """Rounds that last by the keys that they verify over, from 64 + 1 + the draft's on."""
    keys, round_s = 64 + 1 + draft_length, list[float]()
    for count in accepted:
        round_s.append(0.2 if keys % 2 == 0 else 0.3)
        keys += count + 1
    return replace(
        SPECULATIVE,
        draft_length=draft_length,
        round_s=tuple(round_s),
        accepted=accepted,
        environment=OWN,
    )


def as_lookup(run: Run, proposed: tuple[int, ...]) -> Run:
    settings: dict[str, Any] = {"strategy": "prompt-lookup", "draft": "", "draft_format": ""}
    return replace(run, ngram=3, proposed=proposed, **settings)


class TestEvenness:
    """Verifying over an odd number of keys takes longer than over an even one."""

    RUN = by_keys((0,) * 17)

    def test_odd_and_even_have_a_quartile_each(self) -> None:
        assert self.RUN.typical_round_s == pytest.approx((8 * 0.2 + 8 * 0.3) / 16)

    def test_over_a_multiple_of_8_it_is_an_even_one(self) -> None:
        """The first of these pays for choosing kernels, and the others of a run are few."""
        round_s = list(self.RUN.round_s)
        round_s[3], round_s[11] = 5.0, 0.1  # 72 and 80 keys
        run = replace(self.RUN, round_s=tuple(round_s))
        assert run.typical_round_s == pytest.approx(self.RUN.typical_round_s)

    def test_disturbed_rounds_of_both_kinds_move_nothing(self) -> None:
        run = by_keys((0,) * 49)
        disturbed = [2 * s if number % 5 == 0 else s for number, s in enumerate(run.round_s)]
        again = replace(run, round_s=tuple(disturbed))
        assert again.typical_round_s == pytest.approx(run.typical_round_s)

    def test_what_was_accepted_moves_the_keys_on(self) -> None:
        """Keys of 69, 72, 77, 82, 84, 86, 87, 88."""
        run = by_keys((2, 4, 4, 1, 1, 0, 0, 0))
        # Two rounds follow full acceptance, over 77 and 82 keys.
        assert run.round_s == (0.3, 0.2, 0.3, 0.2, 0.2, 0.2, 0.3, 0.2)
        assert run.typical_round_s == pytest.approx(sum(run.round_s[1:]) / 7)

    def test_rounds_after_full_acceptance_are_told_apart_as_well(self) -> None:
        run = by_keys((4, 0, 0) * 16)
        after = [False, *(count == 4 for count in run.accepted[:-1])]
        slower = [s + 0.05 * full for s, full in zip(run.round_s, after, strict=True)]
        told = replace(run, round_s=tuple(slower))
        assert told.typical_round_s == pytest.approx(sum(slower[1:]) / 47)

    def test_where_the_context_begins_changes_no_kind(self) -> None:
        later = replace(self.RUN, context_tokens=self.RUN.context_tokens + 1)
        assert later.typical_round_s == pytest.approx(self.RUN.typical_round_s)

    @pytest.mark.parametrize(
        "changes",
        [
            {"environment": replace(OWN, mlx_variables=())},  # a library attends
            {"environment": ENVIRONMENT},  # another kernel does
        ],
        ids=["cudnn", "metal"],
    )
    def test_elsewhere_all_rounds_are_of_one_kind(self, changes: dict[str, Any]) -> None:
        assert replace(self.RUN, **changes).typical_round_s == pytest.approx(0.2)

    @pytest.mark.parametrize(("draft_length", "kinds"), [(2, 1), (3, 2)])
    def test_rows_that_one_kernel_takes_are_of_one_kind(
        self, draft_length: int, kinds: int
    ) -> None:
        """It takes three: the target's own token and two of the draft."""
        run = by_keys((0,) * 17, draft_length)
        assert run.typical_round_s == pytest.approx({1: 0.2, 2: 0.25}[kinds])

    def test_rounds_of_prompt_lookup_are_told_apart_from_the_first(self) -> None:
        run = as_lookup(self.RUN, (4,) * 17)
        assert run.typical_round_s == pytest.approx((8 * 0.2 + 9 * 0.3) / 17)

    def test_rounds_of_prompt_lookup_without_a_draft_are_of_one_kind(self) -> None:
        """One row: its scores stay in a kernel, over 66, 67, 69, 70 and so on."""
        proposed = (4, 0, 0) * 8
        round_s = (*(0.3, 0.05, 0.09), *(0.2, 0.09, 0.05)) * 4
        run = as_lookup(replace(by_keys((0,) * 24), round_s=round_s), proposed)
        assert run.typical_round_s == pytest.approx((4 * 0.3 + 4 * 0.2 + 16 * 0.05) / 24)


LOOKUP = replace(
    PLAIN,
    strategy="prompt-lookup",
    draft_length=2,
    ngram=3,
    round_s=(0.3, 0.1, 0.5, 0.2, 0.1),
    accepted=(2, 0, 1, 0, 0),
    proposed=(2, 0, 2, 2, 0),
)


class TestPromptLookup:
    def test_rounds_without_a_match_tell_nothing_of_the_acceptance(self) -> None:
        assert LOOKUP.match == pytest.approx(0.6)
        assert LOOKUP.drafted == 6
        assert LOOKUP.acceptance_by_position == pytest.approx((2 / 3, 1 / 2))
        assert LOOKUP.tokens_per_pass == pytest.approx(1.6)

    def test_rounds_with_a_draft_and_without_have_a_quartile_each(self) -> None:
        # With: 0.3, 0.5, 0.2, whose quartile is 0.25. Without: 0.1, 0.1.
        assert LOOKUP.typical_round_s == pytest.approx(0.6 * 0.25 + 0.4 * 0.1)


def test_a_batch_counts_the_tokens_of_all_its_sequences() -> None:
    batch = replace(PLAIN, strategy="batch", batch=4, round_s=(0.2,) * 5)
    assert batch.tokens_per_s == pytest.approx(20.0)
    assert batch.mean_tokens_per_s == pytest.approx(20.0)


DIFFUSION = replace(
    PLAIN,
    strategy="diffusion",
    block=4,
    committed=2.5,
    tokens=6,
    output=(5, 6, 7, 8, 9, 10),
    round_s=(0.2, 0.4, 0.1, 0.3, 0.3, 0.1),
    commits=(3, 1, 0, 2, 2, 0),
    accepted=(0,) * 6,
)


class TestDiffusion:
    def test_only_what_the_answer_uses_counts_and_every_pass_does(self) -> None:
        assert DIFFUSION.tokens_per_pass == 1.0
        assert DIFFUSION.committed_per_pass == 2.0
        assert DIFFUSION.mean_tokens_per_s == pytest.approx(6 / 1.4)

    def test_each_block_and_the_writing_have_a_quartile_of_their_own(self) -> None:
        # Blocks: 0.2 and 0.4, whose quartile is 0.25, and 0.3 twice. Writing: 0.1 twice.
        assert DIFFUSION.typical_round_s == pytest.approx((0.25 + 0.3 + 0.1) / 3)

    def test_passes_that_met_new_shapes_are_not_taken_for_disturbed_ones(self) -> None:
        new = (False, True, False, False, False, True)
        # Blocks: 0.2, and 0.3 twice. Writing: 0.1. New shapes: 0.4, and 0.5 where that writes.
        planned = replace(
            DIFFUSION,
            new_shapes=new,
            round_s=(0.2, 0.4, 0.1, 0.3, 0.3, 0.5),
            environment=replace(ENVIRONMENT, device="cuda"),
        )
        assert planned.typical_round_s == pytest.approx((0.2 + 0.4 + 0.1 + 0.6 + 0.5) / 6)

    def test_without_a_librarys_attention_no_shape_is_new(self) -> None:
        off = (("MLX_CUDA_USE_CUDNN_SDPA", "0"),)
        own = replace(DIFFUSION, environment=replace(ENVIRONMENT, device="cuda", mlx_variables=off))
        falsely = replace(own, new_shapes=(False, True, False, False, False, True))
        assert falsely.typical_round_s == own.typical_round_s
