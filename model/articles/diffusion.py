r"""Claim: block diffusion runs at 0.6 to 17.6 tok/s by answer length, and never wins.

A canvas of R positions is paid for whatever the answer, so n useful tokens take as many passes as
R would, and tok/s is proportional to n until the canvas is full:

.. math:: \text{tok/s}(n) = \frac{n}{R}\,\frac{c}{t_{pass}(R)}

with c tokens committed per pass. What the article states gives t = c / (tok/s) of a full canvas;
the model is asked which canvas takes that long.
"""

from __future__ import annotations

import math

from model.articles.bench import CONTEXT, Bench, loaded
from model.articles.claim import Article, Claim, Figure, Panel, Published, Verdict, Word
from model.articles.diffusion_passes import (
    Canvas,
    canvas_panel,
    canvas_pass,
    canvas_that_takes,
    experts_of,
)
from model.articles.estimates import sustained_tokens_per_s
from model.machine.profile import Profile
from model.network.checkpoint import Checkpoint
from model.prediction.memory import feasibility
from model.prediction.prediction import predict
from model.progress.diffusion import BlockProgress
from model.strategies.block_diffusion import BlockDiffusion
from model.strategies.plain import Plain
from model.units import GB, MILLI

MODEL = "llada2.0-mini"
NAMED_RIVAL = ("qwen3-4b", "4bit")
"""The article names the model and not its format."""

RIVALS = ((MODEL, "4bit"), NAMED_RIVAL, ("llama-3.1-8b", "4bit"))
COMMITTED = 4.4
SHORT_TOKENS_PER_S, LONG_TOKENS_PER_S = 0.6, 17.6
PASS_S = COMMITTED / LONG_TOKENS_PER_S
"""Derived: a pass that commits 4.4 tokens at 17.6 tok/s takes 0.25 s."""

RIVAL_TOKENS_PER_S = (8.7, 12.1)
RIVAL_SOURCE = "github.com/robertlangdonn/ondevice-bench"
"""Qwen3-4B in 4 bits on the articles' laptop with some 7 GB swapped out, mlx-lm 0.31.3."""

SHORT_ANSWER = 4
"""Tokens of two words and what ends them; an assumption."""


def examined(bench: Bench) -> Claim:
    """The canvas that takes 250 ms, speeds by answer length on it, and what it takes to tie."""
    profile = bench.then
    target = loaded(profile, MODEL, "4bit")
    canvas = canvas_that_takes(PASS_S, target, profile)
    fits = feasibility(((target, 1),), profile.machine, context=CONTEXT).fits
    needs = needed_figures(profile)
    return Claim(
        id="diffusion",
        title="Block diffusion: 0.6 to 17.6 tok/s by answer length, never the fastest",
        article=Article.SECOND,
        setting=bench.setting("4bit", "format", "canvas", "threshold", "runtime", target=MODEL),
        published=(
            Published(name="two-word answer tok/s", value=SHORT_TOKENS_PER_S),
            Published(name="long answer tok/s", value=LONG_TOKENS_PER_S),
            Published(name="tokens per pass", value=COMMITTED),
            Published(name="ms per pass (derived)", value=PASS_S / MILLI),
            Published(
                name="Qwen3-4B swapped, slowest", value=RIVAL_TOKENS_PER_S[0], source=RIVAL_SOURCE
            ),
            Published(name="fastest", value=RIVAL_TOKENS_PER_S[1], source=RIVAL_SOURCE),
        ),
        predicted=(
            memory_panel(profile),
            canvas_panel(target, profile, canvas.rows),
            Panel(
                title=f"answers on a fixed canvas of {canvas.rows} rows, denoised in full",
                figures=answers(profile, canvas),
            ),
            Panel(title="tokens per pass that would tie with plain decoding", figures=tuple(needs)),
        ),
        verdict=verdict(needs, fits=fits),
        explanation=(
            f"{COMMITTED} tokens per pass at {LONG_TOKENS_PER_S} tok/s are "
            f"{PASS_S / MILLI:.0f} ms a pass; the model takes that long for {canvas.text}.",
            *why(canvas),
            *grouped(target, profile),
            swing(canvas),
            losing(needs),
            *([rival_there()] if bench.is_own else []),
        ),
    )


def verdict(needs: list[Figure], *, fits: bool) -> Verdict:
    """Diffusion surely loses where the rival of the article needs more, cold and hot."""
    rival = " ".join(NAMED_RIVAL)
    lows = [each.interval_90[0] for each in needs if each.case == rival and each.interval_90]
    highs = [each.interval_90[1] for each in needs if each.case == rival and each.interval_90]
    if not fits or not lows:
        return Verdict.CANNOT_TELL
    if min(lows) > COMMITTED:
        return Verdict.AGREES
    return Verdict.CONTRADICTS if max(highs) < COMMITTED else Verdict.CANNOT_TELL


def memory_panel(profile: Profile) -> Panel:
    """Which formats of the model fit at all."""
    figures: list[Figure] = []
    for bits in ("4bit", "8bit"):
        target = loaded(profile, MODEL, bits)
        memory = feasibility(((target, 1),), profile.machine, context=CONTEXT)
        figures += [
            Figure(case=bits, name="needs GB", value=memory.working_set_bytes / GB),
            Figure(case=bits, name="of GB", value=memory.limit_bytes / GB),
            Figure(case=bits, name="", word=Word.FITS if memory.fits else Word.DOES_NOT_FIT),
        ]
    return Panel(title="memory", figures=tuple(figures))


def answers(profile: Profile, canvas: Canvas) -> tuple[Figure, ...]:
    """Speeds by answer length on one canvas that is denoised in full."""
    progress = BlockProgress(block_length=canvas.rows, committed_per_pass=COMMITTED)
    target = loaded(profile, MODEL, "4bit")
    figures: list[Figure] = []
    for tokens in sorted({SHORT_ANSWER, *(round(canvas.rows * s) for s in (0.25, 0.5, 1.0))}):
        strategy = BlockDiffusion(
            progress=progress, answer_tokens=tokens, canvas_tokens=canvas.rows
        )
        prediction = predict(strategy, target, profile, context=0.0)
        case = f"{tokens} tokens"
        figures += [
            Figure(
                case=case,
                name="tok/s",
                value=prediction.tokens_per_s,
                interval_90=prediction.interval_90,
                word=None if prediction.memory.fits else Word.DOES_NOT_FIT,
            ),
            Figure(case=case, name="useful per pass", value=prediction.tokens_per_pass),
            Figure(case=case, name="passes", value=float(progress.passes(tokens))),
        ]
    return tuple(figures)


def needed_figures(profile: Profile) -> list[Figure]:
    """Tokens per pass at which 250 ms tie with plain decoding of each rival, cold and hot."""
    figures: list[Figure] = []
    for name, bits in RIVALS:
        rival = predict(Plain(), loaded(profile, name, bits), profile, context=CONTEXT)
        speed, interval = rival.tokens_per_s, rival.interval_90
        hot = sustained_tokens_per_s(profile, loaded(profile, name, bits), context=CONTEXT)
        case = f"{name} {bits}"
        figures.append(
            Figure(
                case=case,
                name="at 250 ms",
                value=None if speed is None else PASS_S * speed,
                interval_90=None if interval is None else scaled(interval, PASS_S),
                word=Word.DOES_NOT_FIT if speed is None else None,
            )
        )
        figures.append(
            Figure(
                case=case,
                name="at 250 ms, rival hot",
                value=None if hot is None or speed is None else PASS_S * hot.value,
                interval_90=(
                    None if hot is None or speed is None else scaled(hot.interval_90, PASS_S)
                ),
            )
        )
    return figures


def scaled(interval: tuple[float, float], factor: float) -> tuple[float, float]:
    """An interval of a multiple."""
    return interval[0] * factor, interval[1] * factor


def why(canvas: Canvas) -> list[str]:
    """What the time of the canvas goes to."""
    bound = "arithmetic" if canvas.arithmetic_share > 0.5 else "reading weights"
    return [
        f"{canvas.rows} rows touch {canvas.experts_read:.0%} of the experts, where one token of "
        f"plain decoding touches {canvas.experts_of_one:.1%}: the canvas reads "
        f"{canvas.weights_ratio:.0f} times the weights of that token. Arithmetic beyond the "
        f"reading is {canvas.arithmetic_share:.0%} of the pass and reading "
        f"{canvas.weights_share:.0%}, so {bound} binds."
    ]


def grouped(target: Checkpoint, profile: Profile) -> list[str]:
    """The step where gathered experts are served in tiles instead of pair by pair."""
    grouping, experts = profile.machine.grouping, experts_of(target)
    if grouping is None:
        return []
    pairs = max(grouping.least_pairs, grouping.least_pairs_per_expert * experts.num_experts)
    first = math.ceil(pairs / experts.top_k)
    before, after = (
        float(canvas_pass(target, profile, rows).device_s) / MILLI for rows in (first - 1, first)
    )
    return [
        f"From {first} rows on MLX serves the experts in tiles of {grouping.tile_rows} rows, "
        f"mostly padding there: the pass steps from {before:.0f} to {after:.0f} ms."
    ]


def swing(canvas: Canvas) -> str:
    """The factor between the shortest and a full answer."""
    published = LONG_TOKENS_PER_S / SHORT_TOKENS_PER_S
    return (
        f"The canvas was solved for, the swing follows: on a fixed canvas speed is proportional "
        f"to the answer, {SHORT_ANSWER} tokens and {canvas.rows} differ by "
        f"{canvas.rows / SHORT_ANSWER:.0f}, and the published factor of {published:.0f} is that "
        f"of a full canvas over {canvas.rows / published:.1f} tokens."
    )


def losing(needs: list[Figure]) -> str:
    """What the passes would have to commit."""
    cold = [each for each in needs if each.name == "at 250 ms" and each.value is not None]
    parts = [f"{each.value:.1f} for {each.case}" for each in cold]
    most = max((each.value or 0.0 for each in cold), default=0.0)
    return (
        f"To tie at 250 ms a pass would have to commit {', '.join(parts)}; {COMMITTED} were, a "
        f"factor of {most / COMMITTED:.1f} short of plain decoding of the same shape."
    )


def rival_there() -> str:
    """The published rival in the state of that laptop."""
    low, high = RIVAL_TOKENS_PER_S
    lost = "faster than" if high < LONG_TOKENS_PER_S else "slower than"
    return (
        f"Beside runs of Qwen3-4B on that laptop under memory pressure, {low:g} to {high:g} tok/s, "
        f"{LONG_TOKENS_PER_S} is {lost} all of them: what it loses to is a rival that is resident."
    )
