r"""How little each sublayer changes the hidden state, measured on a prompt.

The similarity of a sublayer is the cosine between the residual stream before and after it,
averaged over the tokens of the prompt:

.. math:: s_i = \frac{1}{T} \sum_t \cos\bigl(h_t,\; h_t + f_i(h_t)\bigr)

A draft that skips what changes little should guess like the whole network; KnapSpec uses such a
similarity as the value of a sublayer. It is no acceptance: that is measured by decoding. Assumes
that a sublayer's output is added to the stream as it is; where an architecture scales it or has a
norm behind it, the similarity is that of the unscaled sum.
"""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, final

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache

from calibrate.decoding.layer_skip import HALVES, check_blocks, with_layers
from calibrate.networks import Network
from model.network.sublayers import Half, Sublayer


def similarities(network: Network, tokens: Sequence[int]) -> dict[Sublayer, float]:
    """The similarity of every sublayer on a prompt, in order of execution.

    Raises:
        InputError: blocks that are not made of attention and an MLP.
    """
    layers = list(network.model.layers)
    check_blocks(network, layers)
    watched = [Watched(block) for block in layers]
    model = with_layers(network.model, watched)
    mx.eval(model(mx.array([list(tokens)], mx.uint32), cache=make_prompt_cache(network.model)))
    return {
        Sublayer(layer=index, half=half): value
        for index, block in enumerate(watched)
        for half, value in block.found.items()
    }


@final
class Watched:
    """A block that notes the similarities of its halves when it runs."""

    def __init__(self, block: Any) -> None:
        self._block = copy.copy(block)
        self._halves = {half: Heard(block[name]) for half, name in HALVES.items()}
        for half, name in HALVES.items():
            self._block[name] = self._halves[half]
        self.found: dict[Half, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._block, name)

    def __call__(self, x: mx.array, *rest: Any, **named: Any) -> mx.array:
        """The block's own output."""
        after = self._block(x, *rest, **named)
        attention, mlp = (self._halves[half].output for half in (Half.MIXER, Half.MLP))
        self.found = {
            Half.MIXER: cosine(x, x + attention),
            Half.MLP: cosine(after - mlp, after),
        }
        return after


@final
class Heard:
    """Half of a block that remembers what it gave."""

    def __init__(self, half: Any) -> None:
        self._half = half
        self.output: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._half, name)

    def __call__(self, *rest: Any, **named: Any) -> mx.array:
        """The half's own output."""
        self.output = self._half(*rest, **named)
        return self.output


def cosine(one: mx.array, other: mx.array) -> float:
    """The mean over tokens of the cosine of two streams, from 0 on: opposite is no use either."""
    one, other = one.astype(mx.float32), other.astype(mx.float32)
    inner = (one * other).sum(axis=-1)
    norms = mx.linalg.norm(one, axis=-1) * mx.linalg.norm(other, axis=-1)
    return min(1.0, max(0.0, float(mx.mean(inner / mx.maximum(norms, 1e-30)))))
