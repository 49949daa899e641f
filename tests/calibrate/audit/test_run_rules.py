"""Each rule on one row: a planted violation is found by it, and its near miss is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.audit.rules import audit
from calibrate.published.run_row import PublishedRun
from tests.calibrate.audit.rows import batch, drafted, plain


def rules(*runs: PublishedRun) -> set[str]:
    return {flag.rule for flag in audit(runs)}


def test_clean_rows_have_no_flag() -> None:
    assert audit((plain(), drafted(), batch())) == ()


SILENT = {"tokens_per_pass": "", "acceptance": "", "acceptance_def": ""}
PLANTED = [
    ("speedup-above-progress", drafted(speedup=2.31, decode_tok_s=28.64)),
    # Nothing but k is known: three tokens come out of a pass at most.
    ("speedup-above-progress", drafted(**SILENT, speedup="", decode_tok_s=40.0)),
    # 1 + 0.044 x 4 = 1.18.
    (
        "speedup-above-progress",
        drafted(tokens_per_pass="", k=4, acceptance=0.044, speedup=1.3, decode_tok_s=16.1),
    ),
    # A share of 0.61 of the output is 2.56 tokens per pass.
    (
        "speedup-above-progress",
        drafted(
            tokens_per_pass="",
            k="",
            acceptance_def="share of emitted tokens that were drafted",
            speedup=2.71,
            decode_tok_s=33.6,
        ),
    ),
    ("progress-above-acceptance", drafted(tokens_per_pass=2.28)),
    (
        "progress-above-acceptance",
        drafted(acceptance="0.61;0.33", tokens_per_pass=2.01),
    ),
    ("progress-above-draft", drafted(tokens_per_pass=3.11, acceptance="")),
    ("progress-below-one", drafted(tokens_per_pass=0.9, speedup=0.8, decode_tok_s=9.92)),
    # 8.03e9 x 7 bits x 0.85 is 5.97 GB: 20 tok/s read 119 GB/s.
    ("above-nominal-bandwidth", plain(decode_tok_s=20.0)),
    ("above-nominal-bandwidth", drafted(baseline_tok_s=20.0, decode_tok_s=30.0)),
    ("above-nominal-bandwidth", batch(decode_tok_s=80.0, speedup="")),
    ("above-measured-bandwidth", plain(decode_tok_s=16.4)),
    ("speedup-against-rates", drafted(speedup=1.71)),
    ("batch-speedup-above-batch", batch(speedup=4.2, decode_tok_s="")),
    ("percentage-for-probability", drafted(acceptance=60)),
    ("active-above-all-parameters", plain(target_active_params_b=80.3)),
    ("bandwidth-unit", plain(mem_bandwidth_gb_s_nominal=100_000)),
    ("memory-unit", plain(memory_gb=0.024)),
    ("memory-unit", plain(memory_gb=24_000)),
    ("size-unit", plain(model_bytes_gb=7100)),
    ("size-unit", plain(model_bytes_gb=0.0071)),
    (
        "gain-without-acceptance",
        drafted(acceptance=0.01, tokens_per_pass="", speedup=1.2, decode_tok_s=14.88),
    ),
    (
        "baseline-of-one-stream",
        drafted(batch=4, speedup=2.61, decode_tok_s=32.4, context_tokens=""),
    ),
    ("round-of-many-passes", drafted(speedup=0.05, decode_tok_s=0.6)),
    # 8.03e9 x 8 bits is 8.03 GB: 80 ms and 8 ms allow 11.3 tok/s.
    ("far-below-roof", plain(decode_tok_s=5.5)),
    ("free-first-round", plain(task="16 new tokens")),
    # 2.22 of 40 tokens.
    ("free-first-round", drafted(task="40-token decode")),
]


@pytest.mark.parametrize(("rule", "run"), PLANTED)
def test_a_planted_violation_is_found(rule: str, run: PublishedRun) -> None:
    assert rule in {name.partition("/")[2] for name in rules(run)}


NEAR_MISSES = [
    drafted(speedup=2.22, decode_tok_s=27.5),  # S = E: a free draft and flat rows
    drafted(speedup=2.24, decode_tok_s=27.8),  # E was rounded, and may count the first token
    drafted(tokens_per_pass=3.02, acceptance=1.0),  # the first token was counted
    drafted(tokens_per_pass=2.25),  # an acceptance up to 0.615, and the first token
    drafted(acceptance_def="AX accept rate over confidence-gated proposals"),
    # Of 8 in a tree of depth 2, 0.2 were accepted: more than 1 + 0.2 x 2.
    drafted(acceptance=0.2, draft_model="tree of 8 by Some-1B"),
    drafted(acceptance=0.2, notes="beam width 4 (k = beam length)"),
    drafted(acceptance=0.1, acceptance_def="accepted per token, ambiguous"),
    drafted(
        acceptance=90,
        acceptance_def="",
        strategy="plain",
        decode_tok_s=12.4,
        speedup="",
        baseline_tok_s="",
    ),
    drafted(decode_tok_s=19.4),  # medians of repeats
    drafted(acceptance=0.01, tokens_per_pass="", speedup=0.9, decode_tok_s=11.2),  # it lost
    drafted(speedup=0.4, decode_tok_s=4.96),  # rows one after another
    # 2.22 / 0.159 is 14 passes of 5 ms: what a host does in a round may take as long.
    drafted(
        chip="H200",
        mem_bandwidth_gb_s_nominal=4800,
        baseline_tok_s=200.4,
        decode_tok_s=31.8,
        speedup=0.159,
    ),
    plain(decode_tok_s=15.7),  # 5.97 GB x 15.7 is 93.8 GB/s: within 3 % of the best measured
    plain(decode_tok_s=6.0),
    plain(decode_tok_s=2.0, context_tokens=32_000),  # the cache is read as well
    plain(decode_tok_s=2.0, quant="streaming from disk"),
    plain(target_active_params_b="", decode_tok_s=40.0),  # maybe a mixture
    plain(quant="Q4-class unless the card says otherwise", decode_tok_s=40.0),
    plain(task="256 new tokens"),
    plain(task="16 new tokens", runtime="llama.cpp"),  # another clock
    batch(speedup=4.0, decode_tok_s=48.0),
    batch(decode_tok_s=60.0, speedup=""),
]


@pytest.mark.parametrize("run", NEAR_MISSES)
def test_a_near_miss_is_not_flagged(run: PublishedRun) -> None:
    assert audit((run,)) == ()


def test_a_mixture_is_judged_by_what_a_token_reads() -> None:
    # 3 of 30e9 parameters at 4 bits, 0.85 of them: 1.28 GB, so 78 tok/s is the most on 100 GB/s.
    mixture: dict[str, Any] = {"target_params_b": 30, "target_active_params_b": 3, "quant": "4bit"}
    assert audit((plain(**mixture, decode_tok_s=70.0),)) == ()
    assert rules(plain(**mixture, decode_tok_s=85.0)) == {"impossible/above-nominal-bandwidth"}


def test_a_known_network_is_judged_by_its_shape() -> None:
    # llama-3.1-8b at 4.5 bits without its embedding is 4.22 GB: 23.7 tok/s on 100 GB/s, and 5 %.
    known = {"target_model": "Llama-3.1-8B-Instruct", "quant": "4bit", "target_active_params_b": ""}
    assert rules(plain(**known, decode_tok_s=22.0)) == set()
    assert rules(plain(**known, decode_tok_s=26.0)) == {"impossible/above-nominal-bandwidth"}


def test_swap_is_named_where_the_weights_press_on_the_memory() -> None:
    (pressed,) = audit((plain(decode_tok_s=1.0, memory_gb=16),))
    (roomy,) = audit((plain(decode_tok_s=1.0, memory_gb=128),))
    assert "swap is likely" in pressed.explanation
    assert "heat" in roomy.explanation


@given(
    length=st.integers(1, 16),
    accepted=st.floats(0.0, 1.0),
    cost=st.floats(1.0, 3.0),
    baseline=st.floats(1.0, 12.0),
)
def test_no_honest_run_breaks_an_identity(
    length: int, accepted: float, cost: float, baseline: float
) -> None:
    """E = 1 + a k and a round of one pass or more: no rule of the impossible kind objects.

    Numbers are printed with three digits, as tables do.
    """
    progress = 1.0 + round(accepted, 3) * length
    speedup = progress / cost
    run = drafted(
        k=length,
        acceptance=round(accepted, 3),
        tokens_per_pass=round(progress, 3),
        speedup=round(speedup, 3),
        baseline_tok_s=round(baseline, 2),
        decode_tok_s=round(baseline * speedup, 2),
    )
    assert {name for name in rules(run) if name.startswith("impossible")} == set()
