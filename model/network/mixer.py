r"""How a layer looks at the past: attention over cached tokens, or a state of fixed size.

A *mixer* is what remains of a layer when its weight matrices are priced elsewhere: the bytes it
keeps of every token (or in all), and the multiply-accumulates of a row with them.

* Grouped-query attention keeps :math:`2 n_{kv} d` numbers of each token, of all or of the last
  `window`. Head widths are explicit: they need not be hidden size / heads.
* Latent attention (DeepSeek V2, arXiv 2405.04434) keeps one latent vector and one rotary key of
  each token for all heads.
* A recurrence (gated delta nets, Mamba 2, short convolutions) keeps a state that no context
  makes larger, read and written once in a pass.

Counts are of numbers; bytes need the width of a cache entry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, final

from model.network.matrix import Siblings

if TYPE_CHECKING:  # numpy takes a quarter of a second to import; listing models needs none of it
    from model.units import Quantity


class MixerKind(Enum):
    """What a layer keeps of the past."""

    FULL = "full"
    """Keys and values of every token."""
    SLIDING = "sliding"
    """Keys and values of the last `window` tokens."""
    LATENT = "latent"
    """A compressed vector of every token."""
    SELECTED = "selected"
    """A vector of every few tokens, of which some are chosen (:mod:`model.network.selection`)."""
    RECURRENT = "recurrent"
    """A state of fixed size."""


class CacheRead(NamedTuple):
    """What a pass does with the past in one layer: read these bytes, multiply depth by columns.

    `depth` x `columns` are multiply-accumulates for each row; `depth` is the tokens looked at.
    """

    read_bytes: Quantity
    depth: Quantity
    columns: Quantity


class AbstractMixer(ABC):
    """How one layer mixes tokens; concrete mixers are final."""

    @property
    @abstractmethod
    def kind(self) -> MixerKind:
        """What it keeps."""

    @abstractmethod
    def kv_elements_per_token(self) -> float:
        """Numbers that attention needs of each token; 0 where another layer keeps them."""

    @abstractmethod
    def cached_elements_per_token(self) -> float:
        """Numbers that mlx-lm keeps and reads of each token: at least those attention needs."""

    @abstractmethod
    def state_bytes(self, element_bytes: float) -> float:
        """Bytes that are kept whatever the context; 0 for attention."""

    @abstractmethod
    def cached_tokens(self, context: Quantity) -> Quantity:
        """Tokens that a row at this context looks at; arrays broadcast."""

    @abstractmethod
    def cache_read(self, context: Quantity, element_bytes: float) -> CacheRead:
        """What each group of rows reads and each row multiplies; arrays broadcast."""

    def macs_per_row(self, context: Quantity) -> Quantity:
        """Multiply-accumulates of one row with the past."""
        read = self.cache_read(context, 2.0)
        return read.depth * read.columns

    def kept_bytes(self, context: Quantity, element_bytes: float) -> Quantity:
        """Bytes of the cache and the state at a context."""
        tokens = self.cached_tokens(context)
        owned = self.cached_elements_per_token() if self.kv_elements_per_token() else 0
        return tokens * owned * element_bytes + self.state_bytes(element_bytes)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(AbstractMixer):
    """Grouped-query attention: query heads share fewer key and value heads.

    `value_dim` is the width of a value head where it differs from that of queries and keys.
    A layer with `owns_cache` False reads the keys and values of an earlier layer.
    """

    query_heads: int
    kv_heads: int
    head_dim: int
    value_dim: int | None = None
    window: int | None = None
    owns_cache: bool = True

    @property
    def kind(self) -> MixerKind:  # noqa: D102
        return MixerKind.FULL if self.window is None else MixerKind.SLIDING

    @property
    def widths(self) -> int:
        """Numbers of a key and a value of one head."""
        return self.head_dim + (self.head_dim if self.value_dim is None else self.value_dim)

    def kv_elements_per_token(self) -> int:  # noqa: D102
        return self.cached_elements_per_token() if self.owns_cache else 0

    def cached_elements_per_token(self) -> int:  # noqa: D102
        return self.kv_heads * self.widths

    def state_bytes(self, element_bytes: float) -> float:  # noqa: D102
        return 0.0

    def cached_tokens(self, context: Quantity) -> Quantity:
        """Tokens that a row at this context looks at; arrays broadcast.

        The rows of one verify pass see up to `rows` tokens more than the window; that is left out.
        """
        if self.window is None:
            return context
        if isinstance(context, int | float):
            return min(context, self.window)
        import numpy as np

        return np.minimum(context, self.window)

    def cache_read(self, context: Quantity, element_bytes: float) -> CacheRead:
        """A score and a weighted value for each query head and token."""
        tokens = self.cached_tokens(context)
        return CacheRead(
            read_bytes=tokens * self.cached_elements_per_token() * element_bytes,
            depth=tokens,
            columns=self.query_heads * self.widths,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention(AbstractMixer):
    """Multi-head latent attention: all heads share one latent vector and one rotary key.

    `key_dim` and `value_dim` are what the latent unfolds to for each head. `unfolding` are the two
    stacked matrices that do it (mlx-lm's `embed_q` and `unembed_out`). A pass of one row multiplies
    its query with them and attends to the latents themselves; a pass of several rows unfolds the
    keys and values of the whole cache first (mlx-lm 0.32.2, `deepseek_v3.py`), so they are
    multiplied with every cached token. Where `unfolding` is None, mlx-lm caches keys and values
    unfolded (`deepseek_v2.py`) and the saving of the latent is lost.
    """

    query_heads: int
    latent_dim: int
    rope_dim: int
    key_dim: int
    value_dim: int
    unfolding: Siblings | None

    @property
    def kind(self) -> MixerKind:  # noqa: D102
        return MixerKind.LATENT

    def kv_elements_per_token(self) -> int:  # noqa: D102
        return self.latent_dim + self.rope_dim

    def cached_elements_per_token(self) -> int:  # noqa: D102
        if self.unfolding is None:
            return self.query_heads * (self.key_dim + self.rope_dim + self.value_dim)
        return self.kv_elements_per_token()

    def state_bytes(self, element_bytes: float) -> float:  # noqa: D102
        return 0.0

    def cached_tokens(self, context: Quantity) -> Quantity:  # noqa: D102
        return context

    def cache_read(self, context: Quantity, element_bytes: float) -> CacheRead:
        """Scores with latent and rotary key, values from the latent; or those of plain heads."""
        if self.unfolding is None:
            columns = self.query_heads * (self.key_dim + self.rope_dim + self.value_dim)
        else:
            columns = self.query_heads * (2 * self.latent_dim + self.rope_dim)
        return CacheRead(
            read_bytes=context * self.cached_elements_per_token() * element_bytes,
            depth=context,
            columns=columns,
        )

    def unfolded_read(self, context: Quantity, element_bytes: float) -> CacheRead:
        """The cache read of several rows: unfolded keys and values are written, then read."""
        unfolded = self.query_heads * (self.key_dim + self.value_dim)
        kept = self.kv_elements_per_token()
        return CacheRead(
            read_bytes=context * (kept + 2 * unfolded) * element_bytes,
            depth=context,
            columns=unfolded + self.query_heads * self.rope_dim,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence(AbstractMixer):
    """A state of fixed size: linear attention, Mamba 2, or a short convolution.

    `state_elements` are kept in 32 bits (mlx-lm 0.32.2: `gated_delta.py` starts them so, and in
    `ssm.py` time steps in 32 bits make them so), `conv_elements`, the last inputs of a
    convolution, in the activation dtype. `macs` are the multiply-accumulates of one row with the
    state and the kernel of the convolution.

    A pass is priced as one kernel that takes its rows one after the other and reads and writes the
    state once. So it is for a gated delta net on Metal whose key heads are multiples of 32 wide,
    and for Mamba 2 at one row. Elsewhere the price is a lower bound: without Metal mlx-lm loops
    over the rows and moves the state at each, and several rows of Mamba 2 become products of
    their own (`ssm_attn`). Where attention's cache is quantized, the last inputs are counted as
    narrow as that, though mlx-lm leaves them alone: at most 2 % of what a gated delta net keeps.
    """

    state_elements: int
    conv_elements: int
    macs: int

    @property
    def kind(self) -> MixerKind:  # noqa: D102
        return MixerKind.RECURRENT

    def kv_elements_per_token(self) -> int:  # noqa: D102
        return 0

    def cached_elements_per_token(self) -> int:  # noqa: D102
        return 0

    def state_bytes(self, element_bytes: float) -> float:  # noqa: D102
        return self.state_elements * 4.0 + self.conv_elements * element_bytes

    def cached_tokens(self, context: Quantity) -> Quantity:  # noqa: D102
        return 0 * context

    def cache_read(self, context: Quantity, element_bytes: float) -> CacheRead:
        """The state in and out, whatever the context."""
        return CacheRead(
            read_bytes=2.0 * self.state_bytes(element_bytes) + 0 * context,
            depth=1.0,
            columns=self.macs,
        )
