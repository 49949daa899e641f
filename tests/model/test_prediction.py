"""Predictions: parts, intervals, verdicts, memory, and the origin that travels along."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.acceptance import Acceptance
from model.catalog import packaged_profile_text
from model.constant import Origin
from model.prediction import extrapolation, interval, predict
from model.profile import Profile
from model.profile_file import profile_from_json
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative
from model.target import load_target


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


def test_more_scatter_in_the_fit_means_a_wider_interval(m3: Profile) -> None:
    noisy = replace(m3, header=replace(m3.header, residual_log=4 * m3.header.residual_log))
    one, four = (predict(Plain(), TARGET, each, context=64).interval_90 for each in (m3, noisy))
    assert one is not None
    assert four is not None
    assert four[0] < one[0] < one[1] < four[1]


def test_an_interval_without_any_scatter_is_the_estimate() -> None:
    assert interval(10.0, np.full(50, 0.1), 0.0) == pytest.approx((10.0, 10.0))


def test_an_interval_covers_nine_of_ten_draws() -> None:
    drawn = np.exp(0.1 * np.random.default_rng(3).standard_normal(20_000))
    low, high = interval(1.0, drawn, 0.0)
    inside = np.mean((drawn > low) & (drawn < high))
    assert inside == pytest.approx(0.9, abs=0.01)
