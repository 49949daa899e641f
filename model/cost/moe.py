r"""How many experts a pass has to read, and when MLX serves them in groups.

With independent routing, M rows that pick k of E experts each touch

.. math:: U(M) = E \bigl(1 - (1 - k / E)^M\bigr)

different ones. Experts are not equally popular, and neighbouring tokens share more than chance
(25.7 % of their experts against 6.25 % in mlx-lm PR 1485). With popularities drawn from a Beta law
of mean k / E and strength n, a = n k / E, two rows share s = (a + 1) / (n + 1) of theirs, and

.. math:: U(M) = E \Bigl(1 - \prod_{i<M} \frac{n - a + i}{n + i}\Bigr)

which is the first law at n = inf (s = k / E), k at s = 1, and exact for one row and two. Where
nobody measured s, rows of one sequence are taken to choose by chance; the canvases of LLaDA2-mini,
which was trained to balance its experts, agree. Sequences of a batch are taken to have a = 0.5
(:func:`in_batch`), which batches of gpt-oss-20b say (ggml-org/llama.cpp, llama-batched-bench on a
GB10, 2 to 32 sequences of random tokens). Of the other mixtures there Qwen3-Coder-30B-A3B and
gpt-oss-120b say 0.3 and less, GLM-4.7-Flash 1; the text above says 0.24.

Arithmetic is one product per (row, expert) pair whatever the overlap, because MLX's gathered
matrix-vector kernel serves each pair on its own. Only from a number of pairs per expert on does
it sort the pairs and work on tiles of rows (:class:`model.machine.kernels.grouping.Grouping`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from model.errors import InputError
from model.network.checkpoint import Checkpoint
from model.network.layer import Experts
from model.units import Quantity

USUAL_POPULARITY = 0.5
"""Shape of the law of popularities, a: the smaller, the more unequal the experts."""
SMALL_SHAPE = 1e-3
"""Below this further rows add next to no expert, and two logarithms would hide what they add: their
difference is taken as the slope between them, right to a tenth of the cube of the shape."""
LARGE_START = 1e3
"""From here Stirling's series is right to the last digits."""
DIGAMMA_SHIFT = 8
"""So far up its series is right to ten digits."""
EQUAL_SHARE = 1e-5
"""Shares closer to chance than this are those of equal experts."""


def unique_experts(experts: Experts, rows: Quantity) -> Quantity:
    """Expected number of different experts that `rows` rows route to; arrays broadcast.

    Raises:
        InputError: a share of common experts that the routing cannot have.
    """
    chance = experts.top_k / experts.num_experts
    share = chance if experts.shared_choice is None else experts.shared_choice
    if not chance <= share <= 1.0:
        raise InputError(
            f"shared experts {share:g}",
            f"is not possible for {experts.top_k} of {experts.num_experts} experts",
            f"give a share from {chance:.3g} (chance) to 1",
        )
    if share == 1.0:
        return experts.top_k + 0.0 * rows
    if share - chance < EQUAL_SHARE:
        return distinct_by_chance(experts.num_experts, experts.top_k, rows)
    strength = (1.0 - share) / (share - chance)
    shape = strength * chance
    if shape < SMALL_SHAPE:
        middle = 1.0 + strength - 0.5 * shape
        further = digamma(middle + (rows - 1)) - digamma(middle)
        log_unseen = math.log1p(-chance) - shape * further
    else:
        log_unseen = log_rising(strength - shape, rows) - log_rising(strength, rows)
    return experts.num_experts * -np.expm1(log_unseen)


def distinct_by_chance(num_experts: Quantity, top_k: Quantity, rows: Quantity) -> Quantity:
    """Expected number of different experts where all are as popular; arrays broadcast."""
    return num_experts * (1.0 - (1.0 - top_k / num_experts) ** rows)


@lru_cache(maxsize=64)
def in_batch(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint as unrelated sequences use it: popular experts are met again.

    A share that was stated stays.
    """
    architecture = checkpoint.architecture
    layers = tuple(
        layer
        if layer.experts is None or layer.experts.shared_choice is not None
        else replace(
            layer, experts=replace(layer.experts, shared_choice=usual_share(layer.experts))
        )
        for layer in architecture.layers
    )
    if layers == architecture.layers:
        return checkpoint
    return replace(checkpoint, architecture=replace(architecture, layers=layers))


def usual_share(experts: Experts) -> float:
    """The share of its experts that a sequence has in common with another of its batch."""
    chance = experts.top_k / experts.num_experts
    strength = USUAL_POPULARITY / chance
    return (USUAL_POPULARITY + 1.0) / (strength + 1.0) if chance < 1.0 else 1.0


def log_rising(start: float, factors: Quantity) -> Quantity:
    r"""The logarithm of start (start + 1) ... of so many factors; arrays broadcast.

    It is :math:`\ln\Gamma(x + r) - \ln\Gamma(x)`, two numbers that are all but alike for a large
    x: there Stirling's series is subtracted term by term.
    """
    if start < LARGE_START:
        return log_gamma(start + factors) - math.lgamma(start)
    further = (
        factors * math.log(start)
        - factors
        + (start + factors - 0.5) * np.log1p(np.divide(factors, start))
    )
    return further + (1.0 / (start + factors) - 1.0 / start) / 12.0


def digamma(numbers: Quantity) -> Quantity:
    r"""The slope of the logarithm of :math:`\Gamma`, of numbers from 0.9 on, within 1e-9.

    >>> round(float(digamma(1.0)), 8)
    -0.57721566
    """
    shifted = numbers + DIGAMMA_SHIFT
    inverse = shifted**-2.0
    series = inverse * (1.0 / 12.0 - inverse * (1.0 / 120.0 - inverse / 252.0))
    passed = sum(1.0 / (numbers + step) for step in range(DIGAMMA_SHIFT))
    return np.log(shifted) - 0.5 / shifted - series - passed


def log_gamma(numbers: Quantity) -> Quantity:
    """The logarithm of the gamma function, elementwise."""
    return math.lgamma(numbers) if isinstance(numbers, int | float) else _log_gamma(numbers)


_log_gamma = np.vectorize(math.lgamma, otypes=[float])
