"""Predictions: parts, intervals, verdicts, memory, and the origin that travels along."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.catalog import packaged_profile_text
from model.machine.constant import Origin
from model.machine.profile import Profile
from model.machine.profile_file import profile_from_json
from model.machine.profile_store import named_profile
from model.network.sublayers import middle_block
from model.network.target import load_target
from model.prediction.prediction import Z_90, extrapolation, interval, predict
from model.progress.acceptance import Acceptance
from model.progress.diffusion import BlockProgress
from model.strategies.base import AbstractStrategy
from model.strategies.block_diffusion import BlockDiffusion
from model.strategies.layer_skip import LayerSkip
from model.strategies.plain import Plain
from model.strategies.prompt_lookup import PromptLookup
from model.strategies.replacement import Replacement
from model.strategies.speculative import Speculative


@pytest.fixture(scope="module")
def m3() -> Profile:
    return profile_from_json(packaged_profile_text("m3-10core-16gb"), "m3")


TARGET = load_target("llama-3.1-8b", "4bit")
DRAFT = load_target("llama-3.2-1b", "4bit")


def speculative(draft_length: int, acceptance: float) -> Speculative:
    return Speculative(
        draft=DRAFT, draft_length=draft_length, acceptance=Acceptance(by_position=(acceptance,))
    )


def test_parts_sum_to_the_round_and_tokens_follow(m3: Profile) -> None:
    prediction = predict(speculative(4, 0.7), TARGET, m3, context=1024)
    assert prediction.round_s == pytest.approx(sum(s for _, s in prediction.parts_s), rel=1e-9)
    assert prediction.tokens_per_s == pytest.approx(
        prediction.tokens_per_pass / prediction.round_s, rel=1e-12
    )
    # With perfect overlap the estimate is its own lower bound, to the last bit but one.
    assert prediction.lower_s <= prediction.round_s * (1 + 1e-12)
    assert prediction.round_s <= prediction.upper_s * (1 + 1e-12)


def test_the_8b_on_a_base_m3_takes_the_time_of_the_public_estimate(m3: Profile) -> None:
    """W / B + t0: 4.222 GB at 92 GB/s and 1.8 ms for 32 layers is 47.7 ms at no context."""
    prediction = predict(Plain(), TARGET, m3, context=0)
    assert prediction.round_s == pytest.approx(47.7e-3, rel=0.01)
    assert prediction.speedup == 1.0
    assert prediction.verdict == "baseline"


def test_the_interval_holds_the_estimate_and_the_weakest_origin_is_told(m3: Profile) -> None:
    prediction = predict(speculative(2, 0.7), TARGET, m3, context=1024)
    assert prediction.interval_90 is not None
    assert prediction.tokens_per_s is not None
    low, high = prediction.interval_90
    assert low < prediction.tokens_per_s < high
    assert prediction.origin is Origin.PRIOR


@pytest.mark.parametrize(("acceptance", "verdict"), [(0.95, "faster"), (0.0, "slower")])
def test_verdicts_at_both_ends(m3: Profile, acceptance: float, verdict: str) -> None:
    assert predict(speculative(2, acceptance), TARGET, m3, context=1024).verdict == verdict


def test_what_does_not_fit_gets_no_speed(m3: Profile) -> None:
    large = load_target("llama-3.1-70b", "4bit")
    prediction = predict(Plain(), large, m3, context=1024)
    assert prediction.verdict == "does not fit"
    assert prediction.tokens_per_s is None
    assert prediction.interval_90 is None
    assert "GB too much" in prediction.memory.reason


def test_a_draft_counts_towards_the_working_set(m3: Profile) -> None:
    alone = predict(Plain(), TARGET, m3, context=1024).memory.working_set_bytes
    both = predict(speculative(2, 0.5), TARGET, m3, context=1024).memory.working_set_bytes
    cache = 1024 * DRAFT.kv_bytes_per_token
    assert both - alone == pytest.approx(DRAFT.total_bytes + cache)


def test_questions_beyond_the_measurements_widen_the_answer(m3: Profile) -> None:
    near = predict(Plain(), TARGET, m3, context=8192)
    far = predict(Plain(), TARGET, m3, context=32768)
    widths: list[float] = []
    for prediction in (near, far):
        assert prediction.interval_90 is not None
        widths.append(float(np.log(prediction.interval_90[1] / prediction.interval_90[0])))
    assert widths[1] > 2 * widths[0]
    assert far.warnings == ("32768 tokens of context is beyond the 8192 that were measured",)
    # Attention was measured to 16 rows, the matrices further.
    assert extrapolation(m3, 16, 8192) == (1.0, ())
    assert extrapolation(m3, 32, 8192)[0] == 2.0
    assert extrapolation(m3, 64, 16384)[0] == 4.0


def test_rows_of_attention_count_by_whatever_kernel_timed_them() -> None:
    """MLX's own kernel takes three rows; what was timed beyond is not beyond what was measured."""
    profile = named_profile("h200-mlx-0.32.4-no-cudnn")
    assert extrapolation(profile, 32, 4096) == (1.0, ())
    stretch, [warning] = extrapolation(profile, 64, 4096)
    assert stretch == 2.0
    assert warning == "64 rows is beyond the 32 that were measured"


def test_more_scatter_in_the_fit_means_a_wider_interval(m3: Profile) -> None:
    noisy = replace(m3, header=replace(m3.header, residual_log=4 * m3.header.residual_log))
    one, four = (predict(Plain(), TARGET, each, context=64).interval_90 for each in (m3, noisy))
    assert one is not None
    assert four is not None
    assert four[0] < one[0] < one[1] < four[1]


def test_several_rows_have_a_width_of_their_own(m3: Profile) -> None:
    """In quadrature, once in a rate and once in a speedup; a plain pass has none of it."""
    own = 0.2
    wider = replace(m3, header=replace(m3.header, several_rows_residual_log=own))

    def widths(profile: Profile, strategy: AbstractStrategy) -> list[float]:
        found = predict(strategy, TARGET, profile, context=64)
        ends = (found.interval_90, found.speedup_interval_90)
        assert all(ends)
        return [float(np.log(each[1] / each[0])) / (2 * Z_90) for each in ends if each]

    assert widths(wider, Plain()) == widths(m3, Plain())
    for strategy in (speculative(2, 0.5), Plain(sequences=4)):
        for before, after in zip(widths(m3, strategy), widths(wider, strategy), strict=True):
            assert after == pytest.approx(float(np.hypot(before, own)))


def test_an_interval_without_any_scatter_is_the_estimate() -> None:
    assert interval(10.0, np.full(50, 0.1), 0.0) == pytest.approx((10.0, 10.0))


def test_an_interval_covers_nine_of_ten_draws() -> None:
    drawn = np.exp(0.1 * np.random.default_rng(3).standard_normal(20_000))
    low, high = interval(1.0, drawn, 0.0)
    inside = np.mean((drawn > low) & (drawn < high))
    assert inside == pytest.approx(0.9, abs=0.01)


SEVEN_TENTHS = Acceptance(by_position=(0.7,))
STRATEGIES: tuple[AbstractStrategy, ...] = (
    Plain(),
    Plain(sequences=4),
    speculative(2, 0.7),
    replace(speculative(2, 0.7), sequences=3),
    LayerSkip(
        skipped=middle_block(TARGET.architecture, 0.5), draft_length=2, acceptance=SEVEN_TENTHS
    ),
    PromptLookup(draft_length=4, acceptance=SEVEN_TENTHS, match=0.3),
    BlockDiffusion(
        progress=BlockProgress(block_length=32, committed_per_pass=4.0),
        answer_tokens=100,
        cached=True,
    ),
    Replacement(other=DRAFT),
)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: f"{each.name}-{each.batch}")
def test_every_strategy_is_predicted_as_it_is_priced(
    m3: Profile, strategy: AbstractStrategy
) -> None:
    found = predict(strategy, TARGET, m3, context=1024)
    round_s = float(strategy.round(TARGET, m3.machine, 1024).round_s)
    assert found.round_s == pytest.approx(round_s, rel=1e-9)
    assert found.lower_s <= round_s * (1 + 1e-9)
    assert round_s <= found.upper_s * (1 + 1e-9)
    tokens_per_s = strategy.batch * strategy.tokens_per_pass / round_s
    assert found.tokens_per_s == pytest.approx(tokens_per_s)
    # A batch of plain sequences is compared with one, a drafted batch with as many.
    rival = Plain(sequences=strategy.batch if "acceptance" in found.settings else 1)
    rival_s = float(rival.round(TARGET, m3.machine, 1024).round_s)
    assert found.speedup is not None
    assert found.speedup == pytest.approx(tokens_per_s * rival_s / rival.batch)
    assert found.interval_90 is not None
    assert found.speedup_interval_90 is not None
    assert found.interval_90[0] < tokens_per_s < found.interval_90[1]
    assert found.speedup_interval_90[0] <= found.speedup <= found.speedup_interval_90[1]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: f"{each.name}-{each.batch}")
def test_a_machine_of_draws_is_as_many_machines(m3: Profile, strategy: AbstractStrategy) -> None:
    """The draws of a fit are priced in one call; their median is near the estimate."""
    drawn = strategy.round(TARGET, m3.sampled_machine, 1024).round_s
    assert np.shape(drawn) == (len(next(iter(m3.constants.values())).draws),)
    point = float(strategy.round(TARGET, m3.machine, 1024).round_s)
    assert float(np.median(drawn)) == pytest.approx(point, rel=0.05)


def test_a_batch_multiplies_throughput_and_is_compared_with_one_sequence(m3: Profile) -> None:
    one, four = (predict(Plain(sequences=n), TARGET, m3, context=64) for n in (1, 4))
    assert one.tokens_per_s is not None
    assert four.tokens_per_s is not None
    assert four.speedup is not None
    assert four.speedup == pytest.approx(four.tokens_per_s / one.tokens_per_s)
    assert 1.0 < four.speedup < 4.0


def test_a_small_model_instead_is_faster_by_the_bytes_it_saves(m3: Profile) -> None:
    found = predict(Replacement(other=DRAFT), TARGET, m3, context=64)
    assert found.verdict == "faster"
    ratio = TARGET.weight_bytes_per_token / DRAFT.weight_bytes_per_token
    assert found.speedup is not None
    assert 0.6 * ratio < found.speedup <= ratio
