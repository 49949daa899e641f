"""The typical time of a run's rounds: lower quartiles, each over rounds of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from statistics import fmean, quantiles

BLOCK_ROUNDS = 8


WRITES, PLANNED, PLANNED_WRITES = -1, -2, -3
"""Kinds of passes of block diffusion; the others are the numbers of their blocks."""


def pass_kinds(commits: Sequence[int], new_shapes: Sequence[bool] = ()) -> list[int]:
    """The block that each pass of diffusion denoises, or that it writes one to the cache.

    Passes that met a new shape are of kinds of their own: it costs them many times what the block
    that they are in does.

    >>> pass_kinds([2, 2, 0, 3, 1, 0])
    [0, 0, -1, 1, 1, -1]
    >>> pass_kinds([2, 2, 0, 3, 1, 0], [True, False, True, True, False, False])
    [-2, 0, -3, -2, 1, -1]
    """
    written = accumulate(int(not count) for count in commits)
    kinds = [number if count else WRITES for number, count in zip(written, commits, strict=True)]
    for index, is_new in enumerate(new_shapes):
        if is_new:
            kinds[index] = PLANNED if commits[index] else PLANNED_WRITES
    return kinds


def by_evenness(kinds: Sequence[int], keys: Sequence[int]) -> list[int]:
    """Kinds of rounds that are also told apart by whether their scores are over an even number.

    Where scores are a matrix in memory, its products take two to three times as long over an odd
    number of keys as over an even one, and a quartile over all would be that of the even ones. Over
    a multiple of 8 they are faster still, but few rounds of a run are, and the first of these pays
    for choosing other kernels: of so few no quartile is undisturbed.

    >>> by_evenness([0, 1, 1, 0], [4096, 4097, 4098, 4103])
    [0, 3, 2, 1]
    """
    return [2 * kind + each % 2 for kind, each in zip(kinds, keys, strict=True)]


def mean_quartile(kinds: Sequence[int], seconds: Sequence[float]) -> float:
    """The lower quartile of each kind of round, weighted by how many there are."""
    times: dict[int, list[float]] = {}
    for kind, each_s in zip(kinds, seconds, strict=True):
        times.setdefault(kind, []).append(each_s)
    return sum(len(group) / len(seconds) * quartile(group) for group in times.values())


def block_means(seconds: Sequence[float]) -> list[float]:
    """Means of 8 rounds in a row; the last block takes what is left over."""
    starts = range(0, max(len(seconds) - BLOCK_ROUNDS, 0) + 1, BLOCK_ROUNDS)
    ends = [*starts[1:], len(seconds)]
    return [fmean(seconds[start:end]) for start, end in zip(starts, ends, strict=True)]


def quartile(values: Sequence[float]) -> float:
    """The lower quartile, interpolated; of a single value, itself."""
    return quantiles(values, n=4, method="inclusive")[0] if len(values) > 1 else values[0]
