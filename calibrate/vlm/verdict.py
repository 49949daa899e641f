"""Forced acceptance in mlx-vlm's rounds: a coin says how much of a draft the target accepts.

The real draft and verify passes run, and only the comparison's result is replaced; what the caches
of both then take back is real (:mod:`calibrate.decoding.coin` does the same in mlx-lm's rounds).
Most targets are compared all rows at once. Gemma 4 makes logits row by row and stops at the first
difference, so there each row that the coin accepts is made, too.
"""

# mlx-vlm has no hints, and MLX's own are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from itertools import count
from typing import Any, TypeAlias

import mlx.core as mx

from calibrate.coin import Coin
from calibrate.vlm.library import part, watched

Walk: TypeAlias = Callable[..., tuple[int, list[int]]]


def all_rows(coin: Coin) -> Callable[[Walk], Walk]:
    """For walks that are given the target's choice of every row."""

    def watcher(walk: Walk) -> Walk:
        def walked(drafted: mx.array, chosen: mx.array, budget: int) -> tuple[int, list[int]]:
            walk(drafted, chosen, budget)  # what it costs is paid
            accepted = coin.accepted(drafted.shape[1])
            draft: Any = drafted[0, :accepted].tolist()
            bonus: Any = chosen[0, accepted : accepted + 1].tolist()
            return accepted, [*draft, *bonus][:budget]

        return walked

    return watcher


def row_by_row(coin: Coin) -> Callable[[Walk], Walk]:
    """For walks that make the target's choice themselves, until one differs."""

    def watcher(walk: Walk) -> Walk:
        def walked(
            target: Any, states: mx.array, drafted: mx.array, sampler: Any, budget: int, **rest: Any
        ) -> tuple[int, list[int]]:
            accepted = coin.accepted(drafted.shape[1])
            rows = count()

            def sample(logits: mx.array) -> mx.array:
                best, row = sampler(logits), next(rows)
                if row >= drafted.shape[1]:
                    return best
                guess = drafted[0, row].astype(best.dtype)
                # Either depends on the logits still, so that they are really computed.
                if row < accepted:
                    return mx.where(best == guess, best, guess)
                return mx.where(best == guess, (guess + 1) % logits.shape[-1], best)

            return walk(target, states, drafted, sample, budget, **rest)

        return walked

    return watcher


WALKS: Mapping[str, tuple[tuple[str, str, Callable[[Coin], Callable[[Walk], Walk]]], ...]] = {
    "mtp": (
        ("speculative.mtp", "_speculative_walk", all_rows),
        ("speculative.mtp", "_speculative_walk_deferred_greedy", row_by_row),
    ),
    "eagle3": (("speculative.eagle3", "_eagle3_walk", all_rows),),
    "dflash": (("speculative.dflash", "_speculative_walk", all_rows),),
}
"""Where the rounds of each kind of head compare drafted tokens with the target's."""


@contextlib.contextmanager
def overruled(kind: str | None, coin: Coin | None) -> Generator[None]:
    """Let the coin decide in rounds of this kind, if there are a kind and a coin."""
    with contextlib.ExitStack() as stack:
        if kind is not None and coin is not None:
            for module, name, watcher in WALKS[kind]:
                stack.enter_context(watched(part(module), name, watcher(coin)))
        yield
