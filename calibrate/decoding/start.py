"""Where a decode starts: a prompt, and perhaps caches that hold all of it but the last token.

Runs of one context share them. Each gets copies: MLX's arrays are values, so a copy costs nothing
until the first token is written. On CUDA the copies of each run have more room than they need, no
two the same: cuDNN plans attention for the layout of its keys, so that none meets a plan that a
run before it has made, and each is as it would be alone in its process.

A cache can be filled in two ways. Real weights read the prompt.
Random ones may have random keys and values instead: what is in a cache does not change what it
costs to attend to it, and a long prompt would take longer to read than the run itself.
"""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any, final

import mlx.core as mx
from mlx_lm.generate import generation_stream
from mlx_lm.models.cache import KVCache, make_prompt_cache

from calibrate.networks import Network

PREFILL_ROWS = 2048
"""Tokens of the prompt that one pass reads, as in mlx-lm's `generate_step`."""
SEED = 11
MOST_ROOMS = 24
"""After so many starts a layout is used again; by then its plans are forgotten, of which MLX keeps
256 and a run makes dozens."""
_rooms = itertools.count()


@final
class Start:
    """A prompt, and the caches of the networks that have read it."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = tuple(tokens)
        # The model is kept too: the number of one that is gone may be given to another.
        self._kept: dict[int, tuple[Any, list[Any]]] = {}
        self._room = 0
        self.filled = False

    @property
    def context(self) -> int:
        """Tokens of the prompt."""
        return len(self.tokens)

    @property
    def prompt(self) -> mx.array:
        """The whole prompt."""
        return mx.array(list(self.tokens), mx.uint32)

    @property
    def last(self) -> mx.array:
        """The last token, which no cache holds yet."""
        return mx.array([self.tokens[-1]], mx.uint32)

    def ending(self, count: int) -> Start:
        """The last tokens alone, with no caches."""
        return Start(self.tokens[-count:])

    def apart(self) -> Start:
        """The same start; on CUDA its copies have other room than those of the last MOST_ROOMS."""
        other = copy.copy(self)
        if mx.cuda.is_available():
            other._room = next(_rooms) % MOST_ROOMS + 1
        return other

    @property
    def is_apart(self) -> bool:
        """Whether the copies meet no attention plan that was made for others."""
        return self._room > 0 and bool(self._kept)

    def holds(self, network: Network) -> bool:
        """Whether the network's caches are kept here."""
        return id(network.model) in self._kept

    def read(self, network: Network) -> None:
        """Let a network read all but the last token, and keep its caches."""
        self._kept[id(network.model)] = network.model, prefilled(network, self.tokens)

    def fill(self, network: Network) -> None:
        """Keep caches of random keys and values for a network, or read where that cannot be."""
        caches = filled(network, self.context - 1)
        if caches is None:
            self.read(network)
        else:
            self._kept[id(network.model)] = network.model, caches
            self.filled = True

    def forget(self, network: Network) -> None:
        """Keep the network's caches no longer."""
        self._kept.pop(id(network.model), None)

    def caches(self, network: Network) -> list[Any]:
        """Caches that hold all but the last token and that the caller may change."""
        if not self.holds(network):
            return prefilled(network, self.tokens)
        kept = self._kept[id(network.model)][1]
        return [roomier(duplicate(cache), self._room * KVCache.step) for cache in kept]


def prefilled(network: Network, tokens: Sequence[int]) -> list[Any]:
    """Caches of a network that has read all tokens but the last."""
    caches: list[Any] = make_prompt_cache(network.model)
    with mx.stream(generation_stream):
        unread = mx.array(list(tokens[:-1]), mx.uint32)
        while unread.size:
            network.model(unread[:PREFILL_ROWS][None], cache=caches)
            mx.eval([cache.state for cache in caches])
            unread = unread[PREFILL_ROWS:]
            mx.clear_cache()
    return caches


def filled(network: Network, tokens: int) -> list[Any] | None:
    """Caches of so many random keys and values; None where they hold anything else.

    One token is read, to see what shape the keys and values of each layer have.
    """
    sample: list[Any] = make_prompt_cache(network.model)
    if not all(type(cache) is KVCache for cache in sample) or not tokens:
        return None
    with mx.stream(generation_stream):
        network.model(mx.array([[0]], mx.uint32), cache=sample)
        mx.eval([cache.state for cache in sample])
        caches: list[Any] = []
        key = mx.random.key(SEED)
        for cache in sample:
            drawn: list[mx.array] = []
            for part in cache.keys_and_values():
                key, own_key = mx.random.split(key)
                batch, heads, _, width = part.shape
                shape = (batch, heads, tokens, width)
                drawn.append(mx.random.normal(shape, dtype=part.dtype, key=own_key))
            full = KVCache()
            full.update_and_fetch(*drawn)
            mx.eval(full.state[:2])
            caches.append(full)
    mx.clear_cache()
    return caches


def roomier(cache: Any, slots: int) -> Any:
    """The cache with so many further slots in memory, where it is one of keys and values."""
    if slots and type(cache) is KVCache:
        for name in ("keys", "values"):
            part = getattr(cache, name)
            batch, heads, _, width = part.shape
            more = mx.zeros((batch, heads, slots, width), dtype=part.dtype)
            setattr(cache, name, mx.concatenate([part, more], axis=2))
        mx.eval(cache.keys, cache.values)
    return cache


def duplicate(cache: Any) -> Any:
    """A cache of the same content whose changes do not reach the first one.

    Writing into an array changes the object that holds it, so each needs one of its own.
    """
    other = copy.copy(cache)
    vars(other).update((name, _own(value)) for name, value in vars(cache).items())
    return other


def _own(value: Any) -> Any:
    if isinstance(value, mx.array):
        return mx.array(value)
    if isinstance(value, list | tuple):
        kind: Any = type(value)
        return kind(map(_own, value))
    return duplicate(value) if hasattr(value, "update_and_fetch") else value
