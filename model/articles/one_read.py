"""Claim: one read of all weights for each token is what bounds the speed of plain decoding."""

from __future__ import annotations

from model.articles.bench import CONTEXT, TARGET, Bench, loaded
from model.articles.claim import (
    Article,
    Claim,
    Figure,
    Panel,
    Published,
    Verdict,
    covers,
    speed,
)
from model.articles.estimates import sustained_tokens_per_s
from model.articles.fewer_bits import share
from model.machine.profile import Profile
from model.prediction.prediction import Prediction, predict
from model.strategies.plain import Plain
from model.units import GIGA

BASELINE_TOKENS_PER_S = 7.99
COLD_CONTEXT = 2073.0
COLD_TOKENS_PER_S = (16.5, 18.86)
COLD_SOURCE = "github.com/robertlangdonn/kv-cache-tax, thermal_control_v2.jsonl"
"""Cold runs of Llama-3.1-8B in 4 bits on the articles' laptop, the last one after a rest."""

SWAPPED_TOKENS_PER_S = (5.1, 7.7)
SWAPPED_SOURCE = "github.com/robertlangdonn/ondevice-bench"
"""The same model there with some 7 GB swapped out and no control of the heat, mlx-lm 0.31.3."""


def examined(bench: Bench) -> Claim:
    """The share of a token that is reading, and the bandwidth that the published speed means."""
    profile = bench.then
    four = predict(Plain(), loaded(profile, TARGET, "4bit"), profile, context=CONTEXT)
    rows = [row for bits in ("4bit", "8bit") for row in format_figures(profile, bits)]
    cold = predict(Plain(), loaded(profile, TARGET, "4bit"), profile, context=COLD_CONTEXT)
    return Claim(
        id="one-read",
        title="One read of the weights for each token is the ceiling of plain decoding",
        article=Article.FIRST,
        setting=bench.setting("4bit", "which 8B", "its format", "context"),
        published=(
            Published(name="8B plain tok/s", value=BASELINE_TOKENS_PER_S),
            Published(name="cold, slowest", value=COLD_TOKENS_PER_S[0], source=COLD_SOURCE),
            Published(name="fastest", value=COLD_TOKENS_PER_S[1], source=COLD_SOURCE),
            Published(
                name="swapped, slowest", value=SWAPPED_TOKENS_PER_S[0], source=SWAPPED_SOURCE
            ),
            Published(name="fastest", value=SWAPPED_TOKENS_PER_S[1], source=SWAPPED_SOURCE),
        ),
        predicted=(Panel(title="plain decoding of the 8B", figures=tuple(rows)),),
        verdict=verdict(four),
        explanation=(
            f"Reading weights is {share(four):.0%} of a 4-bit token, which is bound by "
            f"{four.bound}.",
            *((below(profile, four), checked(cold)) if bench.is_own else ()),
        ),
    )


def verdict(four: Prediction) -> Verdict:
    """The read is the ceiling where it takes most of a token."""
    if not four.memory.fits:
        return Verdict.CANNOT_TELL
    return Verdict.AGREES if share(four) > 0.5 else Verdict.CONTRADICTS


def format_figures(profile: Profile, bits: str) -> list[Figure]:
    """One weight format: cold, hot, its share of reading, and what 7.99 tok/s would mean."""
    target, case = loaded(profile, TARGET, bits), f"8B {bits}"
    cold = predict(Plain(), target, profile, context=CONTEXT)
    hot = sustained_tokens_per_s(profile, target, context=CONTEXT)
    found = [speed(case, "cold tok/s", cold)]
    if hot is not None:
        found.append(
            Figure(case=case, name="hot tok/s", value=hot.value, interval_90=hot.interval_90)
        )
    read = target.weight_bytes_per_token
    return [
        *found,
        Figure(case=case, name="weights", value=share(cold)),
        Figure(case=case, name="GB/s cold", value=read / cold.round_s / GIGA),
        Figure(case=case, name="GB/s at 7.99", value=read * BASELINE_TOKENS_PER_S / GIGA),
    ]


def below(profile: Profile, four: Prediction) -> str:
    """Where 7.99 tok/s lies, and what follows for the other claims."""
    hot_eight = sustained_tokens_per_s(profile, loaded(profile, TARGET, "8bit"), context=CONTEXT)
    if four.interval_90 is None or four.interval_90[0] <= BASELINE_TOKENS_PER_S:
        return f"{BASELINE_TOKENS_PER_S} tok/s is within what this machine does in 4 bits."
    lost = 1.0 - BASELINE_TOKENS_PER_S / (four.tokens_per_s or BASELINE_TOKENS_PER_S)
    sentence = (
        f"{BASELINE_TOKENS_PER_S} tok/s is {lost:.0%} below the cold estimate in 4 bits and "
        "no point on this roof: it is what that laptop did with the same model when it swapped "
        f"({SWAPPED_TOKENS_PER_S[0]:g} to {SWAPPED_TOKENS_PER_S[1]:g})"
    )
    if hot_eight is not None and covers(hot_eight.interval_90, BASELINE_TOKENS_PER_S):
        sentence += f", or 8 bits on a hot one ({hot_eight.value:.1f})"
    return f"{sentence}. So the other claims are compared by their ratios, never by tok/s."


def checked(cold: Prediction) -> str:
    """The model against the same laptop's cold runs."""
    low, high = COLD_TOKENS_PER_S
    if cold.tokens_per_s is None or cold.interval_90 is None:
        return "The cold runs published of that laptop cannot be compared: it does not fit."
    inside = cold.interval_90[0] <= high and low <= cold.interval_90[1]
    return (
        f"Cold runs of that laptop at 2k tokens, {low:g} to {high:g} tok/s, are "
        f"{'within' if inside else 'outside'} the prediction there, {cold.tokens_per_s:.1f} "
        f"({cold.interval_90[0]:.1f} to {cold.interval_90[1]:.1f})."
    )
