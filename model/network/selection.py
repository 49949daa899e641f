r"""Attention over a selection: an indexer scores the past, and a layer attends to the best of it.

What a layer keeps of the past are *entries*, each of `tokens_per_entry` tokens (1: nothing is
compressed), and beside them the last `window` tokens whole. An indexer keeps one narrow key for
every `tokens_per_key` tokens, scores all of them for each row and attention reads the entries of
the best `chosen_tokens` alone. At n tokens

.. math::

   read = e \bigl(\min(n, w) + \min(n, c) / r\bigr) + \frac{n}{s} k,
   \qquad kept = e \bigl(\min(n, w) + n / r\bigr) + \frac{n}{s} k

numbers, with e of an entry and k of a key, and the scores are read only where there is something
to leave out (n > c). So the price still grows with the context, by narrow keys instead of entries,
while memory keeps everything.

Sources: DeepSeek V3.2 (arXiv 2512.02556) for the indexer; the code of mlx-vlm 0.7.10, whose
`deepseek_v4`, `glm5_next` and `qwen4_exp` are the only ones for MLX (mlx-lm 0.32.2 has none of the
three), for what moves in memory. The tokens that wait to become an entry (fewer than
`tokens_per_entry`, twice that in DeepSeek V4) are left out, as are the sort that finds the best
and the gathered copy of what was chosen. Other runtimes score in one kernel (:func:`in_place`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from model.network.mixer import AbstractMixer, CacheRead, MixerKind

if TYPE_CHECKING:  # numpy takes a quarter of a second to import; listing models needs none of it
    from model.network.architecture import Architecture
    from model.units import Quantity

SCORE_BYTES = 4
"""MLX scores in 32 bits."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """What finds the tokens worth attending to: `heads` queries against one key of `key_dim`.

    `score_passes` is how often a runtime writes or reads the score of each head and key in
    memory. MLX does so between one operation and the next, and widens the keys to 32 bits first;
    0 stands for one kernel that reads the keys and writes a number for each. From `blocks_from`
    keys on, only the means of `block_keys` keys and the keys of the best blocks, `blocks_from` in
    all, are scored (HISA, arXiv 2603.28458); all keys are read for the means. `keeps_tokens` adds
    a key of every token to what is kept, copied as a whole at each token.
    """

    heads: int
    key_dim: int
    tokens_per_key: int
    chosen_tokens: int
    score_passes: int
    block_keys: int | None = None
    blocks_from: int = 0
    keeps_tokens: bool = False

    @property
    def kept_elements_per_token(self) -> float:
        """Numbers kept of each token."""
        return self.key_dim * (1.0 / self.tokens_per_key + self.keeps_tokens)

    def scored_keys(self, context: Quantity) -> Quantity:
        """Keys that a row is compared with: none while nothing would be left out."""
        import numpy as np

        keys = context / self.tokens_per_key
        scored = keys
        if self.block_keys is not None and self.score_passes:
            means = keys / self.block_keys + self.blocks_from
            scored = np.where(np.greater_equal(keys, self.blocks_from), means, keys)
        return _plain(np.where(np.greater(context, self.chosen_tokens), scored, 0.0), context)

    def read(self, context: Quantity, element_bytes: float) -> CacheRead:
        """What finding the best moves in memory, and the products of a row with the keys."""
        import numpy as np

        scored = self.scored_keys(context)
        keys = np.where(np.greater(context, self.chosen_tokens), context / self.tokens_per_key, 0.0)
        moved = keys * self.key_dim * element_bytes
        if self.score_passes:
            widened = 2 * SCORE_BYTES * self.key_dim
            moved = moved + scored * (widened + self.score_passes * SCORE_BYTES * self.heads)
        if self.keeps_tokens:
            moved = moved + 2.0 * context * self.key_dim * element_bytes
        return CacheRead(
            read_bytes=_plain(moved, context), depth=scored, columns=self.heads * self.key_dim
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedAttention(AbstractMixer):
    """Attention over a window, and over the entries that an indexer chose or, without one, all.

    All query heads share an entry of `entry_elements` numbers, or `kv_heads` of them do;
    `head_columns` are the multiply-accumulates of one head with it, for score and value.
    `tokens_per_entry` is None where the window is all there is. Where `one_row_reads_all`, a
    runtime masks what was not chosen for a single row in place of leaving it unread (mlx-vlm's
    `qwen4_exp`: its own kernel is for several rows). With `copies_pools`, compressed entries and
    keys are copied as a whole whenever one is added, as mlx-vlm does.
    """

    query_heads: int
    entry_elements: int
    head_columns: int
    kv_heads: int = 1
    tokens_per_entry: int | None = 1
    window: int = 0
    indexer: Indexer | None = None
    one_row_reads_all: bool = False
    copies_pools: bool = True

    @property
    def kind(self) -> MixerKind:  # noqa: D102
        return MixerKind.SLIDING if self.tokens_per_entry is None else MixerKind.SELECTED

    @property
    def growing_elements_per_token(self) -> float:
        """Numbers kept of each token whatever the context: its share of an entry, and of a key."""
        share = (
            0.0 if self.tokens_per_entry is None else self.entry_elements / self.tokens_per_entry
        )
        return share + (0.0 if self.indexer is None else self.indexer.kept_elements_per_token)

    def pools(self) -> tuple[tuple[float, int], ...]:
        """Numbers that a token adds to each pool, and how many tokens pass between two additions.

        Both are compressed in time; entries that are single tokens are no pool.
        """
        found: list[tuple[float, int]] = []
        if self.tokens_per_entry is not None:
            found.append((self.entry_elements / self.tokens_per_entry, self.tokens_per_entry))
        if self.indexer is not None:
            step = self.indexer.tokens_per_key
            found.append((self.indexer.key_dim / step, step))
        return tuple(each for each in found if each[1] > 1)

    def kv_elements_per_token(self) -> float:
        """Numbers that a token adds while the window has room."""
        return self.entry_elements * (self.window > 0) + self.growing_elements_per_token

    def cached_elements_per_token(self) -> float:  # noqa: D102
        return self.kv_elements_per_token()

    def state_bytes(self, element_bytes: float) -> float:  # noqa: D102
        return 0.0

    def cached_tokens(self, context: Quantity) -> Quantity:
        """Entries and tokens of the window that a row looks at; arrays broadcast."""
        return self._looked_at(context, several_rows=False)

    def cache_read(self, context: Quantity, element_bytes: float) -> CacheRead:
        """What attention reads and multiplies for one row, without the indexer."""
        return self._attended(self.cached_tokens(context), element_bytes)

    def chosen_read(self, context: Quantity, element_bytes: float) -> CacheRead:
        """The same for each of several rows, each of which chooses for itself."""
        return self._attended(self._looked_at(context, several_rows=True), element_bytes)

    def macs_per_row(self, context: Quantity) -> Quantity:
        """Multiply-accumulates of one row with entries, window and the indexer's keys."""
        attended = self.cache_read(context, 2.0)
        macs = attended.depth * attended.columns
        if self.indexer is None:
            return macs
        index = self.indexer.read(context, 2.0)
        return macs + index.depth * index.columns

    def kept_bytes(self, context: Quantity, element_bytes: float) -> Quantity:
        """Bytes of window, entries and keys at a context."""
        window = _smaller(context, self.window) * self.entry_elements
        return (window + context * self.growing_elements_per_token) * element_bytes

    def _looked_at(self, context: Quantity, *, several_rows: bool) -> Quantity:
        window = _smaller(context, self.window)
        if self.tokens_per_entry is None:
            return window
        chosen = context
        if self.indexer is not None and (several_rows or not self.one_row_reads_all):
            chosen = _smaller(context, self.indexer.chosen_tokens)
        return window + chosen / self.tokens_per_entry

    def _attended(self, entries: Quantity, element_bytes: float) -> CacheRead:
        return CacheRead(
            read_bytes=entries * self.entry_elements * element_bytes,
            depth=entries,
            columns=self.query_heads * self.head_columns,
        )


def in_place(architecture: Architecture) -> Architecture:
    """The same network under a runtime that scores in one kernel and adds without copying."""
    return replace(
        architecture,
        layers=tuple(
            replace(layer, mixer=_in_place(layer.mixer))
            if isinstance(layer.mixer, SelectedAttention)
            else layer
            for layer in architecture.layers
        ),
    )


def _in_place(mixer: SelectedAttention) -> SelectedAttention:
    fused = None if mixer.indexer is None else replace(mixer.indexer, score_passes=0)
    return replace(mixer, indexer=fused, copies_pools=False)


def _smaller(context: Quantity, limit: int) -> Quantity:
    if isinstance(context, int | float):
        return min(context, limit)
    import numpy as np

    return np.minimum(context, limit)


def _plain(value: Quantity, context: Quantity) -> Quantity:
    """A number for a number, so that counts stay what JSON can hold."""
    return float(value) if isinstance(context, int | float) else value
