"""Each claim's relations: what would break if the physics behind it broke."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from model.articles import diffusion
from model.articles.bench import Bench, article_bench, loaded
from model.articles.claim import Claim, Figure, Verdict, Word
from model.articles.diffusion_passes import canvas_pass, canvas_that_takes
from model.articles.draft_length import FORMATS
from model.articles.draft_length import verdict as pair_verdict
from model.articles.draft_length_case import PAIR, case_of
from model.articles.layer_skip_cells import BEST_SPEEDUP, LENGTHS, cells_of
from model.articles.registry import CLAIMS, examine
from model.machine.profile_store import named_profile
from model.progress.acceptance import Acceptance, tokens_per_pass
from model.strategies.plain import Plain


@pytest.fixture(scope="module")
def bench() -> Bench:
    return article_bench()


@pytest.fixture(scope="module")
def claims(bench: Bench) -> dict[str, Claim]:
    return {each.id: each for each in examine(bench) if isinstance(each, Claim)}


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, Claim]:
    """On a GPU that is bound by unpacking weights, not by reading them."""
    other = article_bench(named_profile("h200-mlx-0.32.4"))
    return {each.id: each for each in examine(other) if isinstance(each, Claim)}


def figure(claim: Claim, case: str, name: str) -> Figure:
    found = [
        each
        for panel in claim.predicted
        for each in panel.figures
        if each.case == case and each.name == name
    ]
    assert len(found) == 1, (case, name)
    return found[0]


def value(claim: Claim, case: str, name: str) -> float:
    found = figure(claim, case, name).value
    assert found is not None
    return found


def test_every_claim_is_answered_with_numbers_and_words(claims: dict[str, Claim]) -> None:
    assert list(claims) == list(CLAIMS)
    for claim in claims.values():
        assert claim.explanation
        assert not re.search(r"\b(nan|inf|None)\b", " ".join(claim.explanation))
        for panel in claim.predicted:
            for each in panel.figures:
                assert (each.value is None) == (each.word is not None), each
                if each.interval_90 is not None and each.value is not None:
                    low, high = each.interval_90
                    assert low <= each.value <= high, each


def test_runtimes_are_those_before_and_after_the_wide_kernel(bench: Bench) -> None:
    before, after = bench.profiles
    assert before.header.runtime.startswith("mlx-0.31")
    assert after.header.runtime.startswith("mlx-0.32")
    assert bench.contrast is not None
    assert article_bench(bench.contrast).profiles == (bench.contrast,)


def test_half_the_bits_are_not_half_the_time(bench: Bench, claims: dict[str, Claim]) -> None:
    chip = bench.now.header.chip
    ratio = value(claims["fewer-bits"], chip, "4-bit / 8-bit")
    eight, four = (loaded(bench.now, "llama-3.1-8b", bits) for bits in ("8bit", "4bit"))
    by_bytes = eight.weight_bytes_per_token / four.weight_bytes_per_token
    assert by_bytes == pytest.approx(8.5 / 4.5, rel=1e-3)
    assert 1.0 < ratio < by_bytes < 2.0


def test_where_unpacking_binds_fewer_bits_buy_nothing(elsewhere: dict[str, Claim]) -> None:
    claim = elsewhere["fewer-bits"]
    assert claim.verdict is Verdict.CONTRADICTS
    assert value(claim, "NVIDIA H200", "4-bit / 8-bit") == pytest.approx(1.0, abs=0.1)
    assert elsewhere["one-read"].verdict is Verdict.CONTRADICTS


def test_the_published_baseline_is_no_point_on_the_roof(
    bench: Bench, claims: dict[str, Claim]
) -> None:
    claim = claims["one-read"]
    cold = figure(claim, "8B 4bit", "cold tok/s")
    assert cold.interval_90 is not None
    assert cold.interval_90[0] > 7.99
    read = loaded(bench.then, "llama-3.1-8b", "4bit").weight_bytes_per_token
    assert value(claim, "8B 4bit", "GB/s at 7.99") == pytest.approx(read * 7.99 / 1e9)
    reached = value(claim, "8B 4bit", "GB/s cold")
    assert value(claim, "8B 4bit", "GB/s at 7.99") < 0.5 * reached
    assert reached < 100.0  # what the chip's data sheet states
    assert value(claim, "8B 8bit", "weights") > value(claim, "8B 4bit", "weights") > 0.9


def test_checking_five_is_free_for_some_formats_and_kernels(claims: dict[str, Claim]) -> None:
    claim = claims["five-tokens"]
    assert claim.verdict is Verdict.DEPENDS
    before, after = "Apple M3, mlx-0.31.2, ", "Apple M3, mlx-0.32, "
    # bf16 before gemv_wide: a step at the second row, and flat from there. Matrices with more
    # outputs than inputs fill tiles of 64 rows (2.3 times one row), the others are cut along K.
    assert 1.5 < value(claim, before + "bf16", "2 rows") < 2.0
    assert value(claim, before + "bf16", "5 rows") == pytest.approx(
        value(claim, before + "bf16", "2 rows"), rel=0.02
    )
    for bits in ("bf16", "8bit"):
        assert value(claim, after + bits, "5 rows") < 1.1
    # A row costs the same arithmetic in any format, so it is the more of a shorter read.
    for runtime in (before, after):
        assert value(claim, runtime + "4bit", "5 rows") > value(claim, runtime + "8bit", "5 rows")
    assert value(claim, before + "4bit", "5 rows") > 1.3 * value(claim, after + "4bit", "5 rows")


def test_both_speedups_come_back_from_the_acceptances(bench: Bench) -> None:
    """T(k) of the solved acceptance is E(k) / S plain tokens, and holds its drafts and pass."""
    case = case_of(bench.then, "4bit", "4bit")
    two, four = case.acceptance
    assert two is not None
    assert four is not None
    tokens = (float(tokens_per_pass(two, 2)), float(tokens_per_pass(four, 4)))
    at_least = PAIR.tokens(case.verify, draft_cost=case.draft_cost)
    # The rest of a round: waiting for its tokens, and the draft's catch-up after a full accept.
    for found, least in zip(tokens, at_least, strict=True):
        assert least < found < 1.2 * least
    assert case.verify.three < case.verify.five


def test_later_kernels_need_less_acceptance(bench: Bench) -> None:
    before, after = (case_of(profile, "4bit", "4bit") for profile in bench.profiles)
    for then, now in zip(before.acceptance, after.acceptance, strict=True):
        assert then is not None
        assert now is not None
        assert now < then


def test_a_draft_in_bf16_never_gained_a_fifth(bench: Bench, claims: dict[str, Claim]) -> None:
    runtime = bench.then.header.runtime
    assert figure(claims["draft-length"], f"{runtime} 4bit+bf16", "k=2: a").word is (
        Word.NO_ACCEPTANCE
    )


def test_an_8_bit_target_with_later_kernels_cannot_have_lost(bench: Bench) -> None:
    """Five rows of 8 bits cost about one: no rates by position give 1.2 at 2 and 0.75 at 4."""
    case = case_of(bench.now, "8bit", "8bit")
    assert case.verify.five < PAIR.least_five_rows(
        three_rows=case.verify.three, draft_cost=case.draft_cost
    )
    assert case.rates is Word.IMPOSSIBLE
    assert case.possible < 0.05
    assert pair_verdict(case) is Verdict.INCONSISTENT


def test_the_first_formats_are_those_of_the_setting(claims: dict[str, Claim]) -> None:
    assert FORMATS[0] == ("4bit", claims["draft-length"].setting.format)


def test_where_every_row_is_paid_for_the_pair_is_inconsistent(elsewhere: dict[str, Claim]) -> None:
    assert elsewhere["draft-length"].verdict is Verdict.INCONSISTENT
    five = elsewhere["five-tokens"]
    assert five.verdict is Verdict.DEPENDS  # on the format: 16-bit weights are read once for all
    assert value(five, "NVIDIA H200, mlx-0.32.4, 4bit", "5 rows") > 4.0
    assert value(five, "NVIDIA H200, mlx-0.32.4, bf16", "5 rows") < 1.3


def test_speed_of_a_fixed_canvas_is_proportional_to_the_answer(claims: dict[str, Claim]) -> None:
    panel = next(p for p in claims["diffusion"].predicted if p.title.startswith("answers"))
    speeds = {
        int(each.case.split()[0]): each.value for each in panel.figures if each.name == "tok/s"
    }
    per_token = [speed / tokens for tokens, speed in speeds.items() if speed is not None]
    assert len(per_token) == len(speeds) > 2
    assert np.ptp(per_token) == pytest.approx(0.0, abs=1e-9)


def test_the_canvas_is_the_smallest_that_takes_as_long(bench: Bench) -> None:
    target = loaded(bench.then, diffusion.MODEL, "4bit")
    assert pytest.approx(0.25) == diffusion.PASS_S
    canvas = canvas_that_takes(diffusion.PASS_S, target, bench.then)
    at, before = (
        float(canvas_pass(target, bench.then, rows).device_s)
        for rows in (canvas.rows, canvas.rows - 1)
    )
    assert before < diffusion.PASS_S <= at
    assert canvas.low_rows < canvas.rows < canvas.high_rows
    assert canvas.hot_rows is not None
    assert canvas.hot_rows < canvas.rows
    one = float(Plain().round(target, bench.then.machine, 0.0).round_s)
    assert at / one > diffusion.COMMITTED


def test_the_bigger_the_rival_the_easier_it_is_beaten(claims: dict[str, Claim]) -> None:
    claim = claims["diffusion"]
    needed = [value(claim, f"{name} {bits}", "at 250 ms") for name, bits in diffusion.RIVALS]
    assert needed == sorted(needed, reverse=True)
    assert figure(claim, "4bit", "").word is Word.FITS
    assert figure(claim, "8bit", "").word is Word.DOES_NOT_FIT


def test_layer_skipping_by_share_length_and_kernel(bench: Bench) -> None:
    before, after = (cells_of(profile, "qwen3-4b") for profile in bench.profiles)
    assert len(before) == 12
    for then, now in zip(before, after, strict=True):
        assert now.plan.speedup_at_most > then.plan.speedup_at_most
        assert (then.plan.needed_acceptance is None) == (then.plan.speedup_at_most <= 1.0)
        needed, allowed = then.plan.needed_acceptance, then.allowed_acceptance
        assert needed is None or (allowed is not None and allowed < needed)
    for length in LENGTHS:
        column = [cell.plan for cell in after if cell.plan.draft_length == length]
        for less, more in pairwise(column):
            assert more.speedup_at_most > less.speedup_at_most


def test_six_percent_at_half_the_layers_loses_and_0_8_is_above_it(claims: dict[str, Claim]) -> None:
    claim = claims["layer-skip"]
    panel = next(p for p in claim.predicted if p.title.startswith("speedup at half"))
    speeds = [each.value for each in panel.figures if each.value is not None]
    assert speeds
    # E = 1.06 tokens or a little more; drafts and head make every round dearer than two tokens.
    assert all(
        0.1 < speed < Acceptance(by_position=(0.06,)).tokens_per_pass(4) / 2 for speed in speeds
    )
    assert max(speeds) < BEST_SPEEDUP
    assert claim.verdict is Verdict.AGREES


def test_replacements_that_fit_win_by_their_bytes(claims: dict[str, Claim]) -> None:
    claim = claims["boring-wins"]
    assert claim.verdict is Verdict.AGREES
    assert claim.published == ()
    assert figure(claim, "mixture: qwen3-30b-a3b 4bit", "tok/s").word is Word.DOES_NOT_FIT
    smaller = [
        value(claim, f"smaller: {name} 4bit", "speedup") for name in ("qwen3-4b", "llama-3.2-3b")
    ]
    mixture = value(claim, "mixture: lfm2-8b-a1b 4bit", "speedup")
    fewer = value(claim, "fewer bits: 8B 4bit to 3bit", "speedup")
    assert 1.0 < fewer < 4.5 / 3.5 < smaller[0] < smaller[1] < mixture


def test_formats_that_were_not_measured_are_said_so(elsewhere: dict[str, Claim]) -> None:
    row = figure(elsewhere["boring-wins"], "fewer bits: 8B 4bit to 3bit", "GB")
    assert row.word is Word.NOT_MEASURED
