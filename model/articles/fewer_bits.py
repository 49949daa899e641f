"""Claim: a model in 4 bits is about twice as fast as in 8, because half the bytes are read."""

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
    gain,
    speed,
)
from model.machine.profile import Profile
from model.prediction.prediction import Prediction, predict
from model.strategies.plain import Plain
from model.strategies.replacement import Replacement
from model.units import GIGA, MILLI

PUBLISHED_RATIO = 2.0


def examined(bench: Bench) -> Claim:
    """The ratio on each machine, and what keeps it from the ratio of the bits."""
    figures: list[Figure] = []
    explanation: list[str] = []
    ratios: list[Figure] = []
    for profile in bench.machines:
        chip = profile.header.chip
        four, eight = (loaded(profile, TARGET, bits) for bits in ("4bit", "8bit"))
        plain = predict(Plain(), eight, profile, context=CONTEXT)
        fewer = predict(Replacement(other=four), eight, profile, context=CONTEXT)
        ratios.append(gain(chip, "4-bit / 8-bit", fewer))
        figures += [
            speed(chip, "8-bit tok/s", plain),
            speed(chip, "4-bit tok/s", fewer),
            ratios[-1],
            Figure(case=chip, name="8-bit weights", value=share(plain)),
            Figure(case=chip, name="4-bit weights", value=share(fewer)),
        ]
        explanation.append(why(profile, plain, fewer))
    read = eight_to_four_bytes(bench.now)
    return Claim(
        id="fewer-bits",
        title="4-bit weights decode about twice as fast as 8-bit weights",
        article=Article.SECOND,
        setting=bench.setting("4bit against 8bit", "which 8B", "context"),
        published=(Published(name="4-bit / 8-bit", value=PUBLISHED_RATIO),),
        predicted=(
            Panel(
                title="speeds, their ratio, and the share of a token that is reading weights",
                figures=tuple(figures),
            ),
        ),
        verdict=verdict(ratios[0]),
        explanation=(
            "Scales and biases make 8.5 and 4.5 bits of 8 and 4, so a token reads "
            f"{read[0] / GIGA:.2f} GB against {read[1] / GIGA:.2f}, {read[0] / read[1]:.3f} times "
            f"as much and not {PUBLISHED_RATIO:g} times.",
            *explanation,
        ),
    )


def verdict(ratio: Figure) -> Verdict:
    """Of the machine itself, not of the one it is compared with."""
    if ratio.value is None:
        return Verdict.CANNOT_TELL
    return Verdict.AGREES if covers(ratio.interval_90, PUBLISHED_RATIO) else Verdict.CONTRADICTS


def eight_to_four_bytes(profile: Profile) -> tuple[int, int]:
    """Bytes that a token reads of the target in 8 and in 4 bits."""
    eight, four = (loaded(profile, TARGET, bits) for bits in ("8bit", "4bit"))
    return eight.weight_bytes_per_token, four.weight_bytes_per_token


def share(prediction: Prediction) -> float:
    """The share of a token's time in which weights are read and nothing else is waited for."""
    return dict(prediction.parts_s)["weights"] / prediction.round_s


def why(profile: Profile, plain: Prediction, fewer: Prediction) -> str:
    """One sentence on where the halved bytes go on one machine."""
    before, after = dict(plain.parts_s), dict(fewer.parts_s)
    rest_s = fewer.round_s - after["weights"] - after["arithmetic"]
    saved_s, decoding_s = before["weights"] - after["weights"], after["arithmetic"]
    sentence = (
        f"{profile.header.chip}: of {fewer.round_s / MILLI:.1f} ms a 4-bit token, "
        f"{rest_s / MILLI:.1f} ms are cache, dispatch and host, which fewer bits leave as they are"
    )
    if decoding_s > after["weights"]:
        added_s = decoding_s - before["arithmetic"]
        return (
            f"{sentence}; {decoding_s / MILLI:.1f} ms are arithmetic beyond the reading, "
            f"{added_s / MILLI:+.1f} ms of it new with 4 bits: unpacking binds there, and "
            f"{saved_s / MILLI:.1f} ms less reading buys a factor of "
            f"{plain.round_s / fewer.round_s:.2f}."
        )
    return f"{sentence}, so that the ratio is {plain.round_s / fewer.round_s:.2f}."
