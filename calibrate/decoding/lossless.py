"""Whether a run decoded what plain decoding does, and how near a tie it was where it did not.

Greedy speculation is lossless in exact arithmetic only. Passes of one row and of several use
kernels that add in another order, and in 16 bits the two best logits can tie.
"""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import mlx.core as mx

from calibrate.networks import Network
from calibrate.run_record import Run


def compare_tokens(plain: Run, other: Run) -> int | None:
    """Where two outputs first differ; None if one is the beginning of the other."""
    pairs = enumerate(zip(plain.output, other.output, strict=False))
    return next((i for i, (one, two) in pairs if one != two), None)


def compared(run: Run, plain: Run) -> Run:
    """The run with its output compared to plain decoding, where it ought to be the same.

    It ought not where a coin decides, and a canvas is no text. Nor is what mlx-vlm's verify passes
    write compared where plain decoding was another library's.
    """
    if run.canvas or run.library != plain.library or run.forced_acceptance is not None:
        return run
    return replace(run, matches_plain=compare_tokens(plain, run) is None)


def divergence(run: Run, plain: Run, target: Network, prompt: Sequence[int]) -> str | None:
    """Where a run leaves plain decoding, and how near the two tokens were; None where nowhere."""
    place = compare_tokens(plain, run)
    if place is None or run.matches_plain is None:
        return None
    text = [*prompt, *plain.output[:place]]
    if run.context_filled:
        # Of random keys and values there is no text that could be read again.
        return f"{run.settings.text}: differs from plain at token {place}"
    gap = logit_gap(target, text, plain.output[place], run.output[place])
    return (
        f"{run.settings.text}: differs from plain at token {place}, where the logits of the two "
        f"tokens are {gap:.1e} of the largest apart"
    )


def logit_gap(network: Network, text: Sequence[int], one: int, other: int) -> float:
    """The difference of two tokens' logits after a text, relative to the largest logit.

    A numerical tie is a gap of a few units in the last place of the activations: 2^-8 each in
    bfloat16, 2^-23 in float32, a thousand times that after a few dozen layers of sums.
    """
    logits = network.model(mx.array([list(text)], mx.uint32))[0, -1].astype(mx.float32)
    return float(mx.abs(logits[one] - logits[other]) / mx.max(mx.abs(logits)))
