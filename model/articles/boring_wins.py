"""Claim: what pays on a 16 GB Mac is fewer bits, a smaller model, or few active parameters."""

from __future__ import annotations

from enum import StrEnum

from model.articles.bench import CONTEXT, TARGET, Bench, loaded
from model.articles.claim import Article, Claim, Figure, Panel, Verdict, Word, gain, speed
from model.articles.fewer_bits import share
from model.errors import InputError
from model.machine.profile import Profile
from model.machine.working_set import NEWER_LIMITS, recommended_bytes
from model.network.target import load_target
from model.prediction.prediction import Prediction, predict
from model.strategies.replacement import Replacement
from model.units import GB


class Change(StrEnum):
    """The kinds of network that may take the target's place."""

    FEWER_BITS = "fewer bits"
    SMALLER = "smaller"
    MIXTURE = "mixture"


CHANGES = (
    (Change.FEWER_BITS, TARGET, "8bit", TARGET, "4bit"),
    (Change.FEWER_BITS, TARGET, "4bit", TARGET, "3bit"),
    (Change.SMALLER, TARGET, "4bit", "qwen3-4b", "4bit"),
    (Change.SMALLER, TARGET, "4bit", "llama-3.2-3b", "4bit"),
    (Change.MIXTURE, TARGET, "4bit", "lfm2-8b-a1b", "4bit"),
    (Change.MIXTURE, TARGET, "4bit", "gpt-oss-20b", "mxfp4"),
    (Change.MIXTURE, TARGET, "4bit", "qwen3-30b-a3b", "4bit"),
)
"""The kind, then the network that is replaced and the one that takes its place."""


RUN_SOURCE = "mlx-lm, BENCHMARKS.md, 4 bits"
RUN_BYTES_PER_S = 546e9
RUNS = {"qwen3-4b": 134.52, "qwen3-30b-a3b": 113.33}
"""Tokens per second on an M4 Max of 546 GB/s, after a prompt of 2048 tokens."""


def examined(bench: Bench) -> Claim:
    """Every replacement, or that it does not fit."""
    profile = bench.now
    rows = [(change, name, replaced(profile, *pair)) for change, name, pair in named_changes()]
    found = [(change, name, each) for change, name, each in rows if each is not None]
    return Claim(
        id="boring-wins",
        title="What pays is fewer bits, a smaller model, or few active parameters",
        article=Article.SECOND,
        setting=bench.setting("4bit", "which models", "context"),
        published=(),
        predicted=(
            Panel(
                title="plain decoding, compared with the 8B it replaces",
                figures=tuple(
                    figure
                    for change, name, each in rows
                    for figure in change_figures(f"{change}: {name}", each)
                ),
            ),
        ),
        verdict=verdict([(change, each) for change, _, each in found]),
        explanation=(
            *memory_sentences(profile, found),
            reading(found),
            caution(),
            "Quality is not priced: a replacement answers differently, a checked draft does not.",
        ),
    )


def named_changes() -> list[tuple[Change, str, tuple[str, str, str, str]]]:
    """Every replacement with the words for it."""
    return [
        (
            change,
            f"{new} {bits}" if new != old else f"8B {before} to {bits}",
            (old, before, new, bits),
        )
        for change, old, before, new, bits in CHANGES
    ]


def replaced(profile: Profile, old: str, before: str, new: str, bits: str) -> Prediction | None:
    """Plain decoding of the one in the place of the other; None for a format not measured."""
    target, other = loaded(profile, old, before), loaded(profile, new, bits)
    try:
        return predict(Replacement(other=other), target, profile, context=CONTEXT)
    except InputError:
        return None


def change_figures(case: str, prediction: Prediction | None) -> list[Figure]:
    """One row of the table."""
    if prediction is None:
        return [Figure(case=case, name="GB", word=Word.NOT_MEASURED)]
    return [
        Figure(case=case, name="GB", value=prediction.memory.working_set_bytes / GB),
        speed(case, "tok/s", prediction),
        gain(case, "speedup", prediction),
        Figure(
            case=case,
            name="weights",
            value=share(prediction) if prediction.memory.fits else None,
            word=None if prediction.memory.fits else Word.DOES_NOT_FIT,
        ),
    ]


def verdict(found: list[tuple[Change, Prediction]]) -> Verdict:
    """Whether each kind has a network that fits and is surely faster."""
    won = {change for change, each in found if each.verdict == "faster"}
    if won == set(Change):
        return Verdict.AGREES
    return Verdict.DEPENDS if won else Verdict.CONTRADICTS


def memory_sentences(profile: Profile, found: list[tuple[Change, str, Prediction]]) -> list[str]:
    """What does not fit, by how much, and whether the larger limit of a newer macOS holds it."""
    newer_bytes = 0.0
    if profile.header.device == "metal":
        newer_bytes = recommended_bytes(profile.header.memory_bytes, macos=NEWER_LIMITS)
    sentences: list[str] = []
    for _, name, each in found:
        need, limit = each.memory.working_set_bytes, each.memory.limit_bytes
        if each.memory.fits:
            continue
        sentence = f"{name} needs {need / GB:.2f} of {limit / GB:.2f} GB and does not fit"
        if limit < need <= newer_bytes:
            sentence += f", though it would in the {newer_bytes / GB:.2f} of macOS {NEWER_LIMITS}"
        sentences.append(f"{sentence}.")
    return sentences


def reading(found: list[tuple[Change, str, Prediction]]) -> str:
    """The share of reading shrinks with the bytes, and what that means for the best of them."""
    fitting = [(name, each) for _, name, each in found if each.speedup is not None]
    if not fitting:
        return "None of them fits."
    name, best = max(fitting, key=lambda pair: pair[1].speedup or 0.0)
    return (
        f"The fastest, {name}, spends {1.0 - share(best):.0%} of its token on something else than "
        "reading weights, which still fewer bytes would not shrink."
    )


def caution() -> str:
    """What the model leaves out of mixtures, in numbers published of another Mac."""
    shares = {
        name: load_target(name, "4bit").weight_bytes_per_token * tokens_per_s / RUN_BYTES_PER_S
        for name, tokens_per_s in RUNS.items()
    }
    listed = ", ".join(f"{name} {share_read:.0%}" for name, share_read in shares.items())
    return (
        f"Read the mixtures as upper ends: on an M4 Max ({RUN_SOURCE}) the reads of a token took "
        f"these shares of the nominal bandwidth: {listed}. The model has no term for that."
    )
