r"""The price of room: caches grow by copying themselves.

mlx-lm allocates 256 tokens at a time, and every time the whole of a layer's cache is read and
written, which is

.. math:: t_{growth} = \frac{2\, \text{bytes}}{256\, B} \text{ per token}

A compressed pool is copied whenever an entry is added (mlx-vlm 0.7.10, `PoolingCache`). Source:
mlx-lm 0.32.2, `models/cache.py`. It stops holding where a cache is allocated whole beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.mixer import AbstractMixer, Attention, MixerKind
from model.network.selection import SelectedAttention
from model.units import Quantity

GROWTH_TOKENS = 256
"""Tokens by which a cache of mlx-lm grows."""


def growth_s(
    checkpoint: Checkpoint, machine: Machine, *, context: Quantity, sequences: int = 1
) -> Quantity:
    """Copying caches to make room, for each token that stays; a window that is full grows no more.

    A state never grows, nor does the cache of a machine whose attention is not bound by memory.
    """
    bytes_per_token: Quantity = 0.0
    for window, kept_bytes, copied_after in growing_caches(checkpoint):
        growing = 1.0 if window is None else np.less_equal(context, window)
        bytes_per_token = bytes_per_token + kept_bytes * growing / copied_after
    law = machine.two_pass_attention or machine.attention
    bandwidth = law.regimes[0].bandwidth_bytes_per_s
    return 2.0 * sequences * bytes_per_token * context / bandwidth


@lru_cache(maxsize=256)
def growing_caches(checkpoint: Checkpoint) -> tuple[tuple[int | None, float, int], ...]:
    """Bytes that a token adds in all layers, by window and by the tokens that a copy lasts."""
    bytes_by_cache: dict[tuple[int | None, int], float] = {}
    for layer, repeats, _ in checkpoint.layer_kinds:
        mixer = layer.mixer
        if mixer is None or mixer.kind is MixerKind.RECURRENT:
            continue
        count = checkpoint.architecture.loops * repeats
        for window, copied_after, added_bytes in _added(mixer, checkpoint.cache_element_bytes):
            key = window, copied_after
            bytes_by_cache[key] = bytes_by_cache.get(key, 0.0) + count * added_bytes
    return tuple((window, added, after) for (window, after), added in bytes_by_cache.items())


def _added(mixer: AbstractMixer, element_bytes: float) -> Iterator[tuple[int | None, int, float]]:
    """Window, tokens that a copy lasts, and bytes of a token, of each cache of a layer."""
    if not isinstance(mixer, SelectedAttention):
        window = mixer.window if isinstance(mixer, Attention) else None
        of_layer = mixer.kept_bytes(1, element_bytes) - mixer.state_bytes(element_bytes)
        yield window, GROWTH_TOKENS, float(of_layer)
        return
    if mixer.window:
        yield mixer.window, GROWTH_TOKENS, mixer.entry_elements * element_bytes
    whole = mixer.growing_elements_per_token
    for elements, tokens in mixer.pools():
        whole -= elements
        if mixer.copies_pools:
            yield None, tokens, elements * element_bytes
    yield None, GROWTH_TOKENS, whole * element_bytes
