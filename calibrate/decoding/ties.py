"""How far apart two tokens were where two greedy decodes of one network went different ways."""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from calibrate.networks import Network


def logit_gap(network: Network, text: Sequence[int], one: int, other: int) -> float:
    """The difference of two tokens' logits after a text, relative to the largest logit.

    A numerical tie is a gap of a few units in the last place of the activations: 2^-8 each in
    bfloat16, 2^-23 in float32, a thousand times that after a few dozen layers of sums.
    """
    logits = network.model(mx.array([list(text)], mx.uint32))[0, -1].astype(mx.float32)
    return float(mx.abs(logits[one] - logits[other]) / mx.max(mx.abs(logits)))
