"""The sizes, rows, contexts and counts that a calibration sweeps, in tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from calibrate.samples import Settings

MODES = ("quick", "full")
SLOW_VOCAB, FAST_VOCAB = 32_768, 128_256


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """The dimensions of a model of this width."""

    hidden: int
    intermediate: int
    query_heads: int
    kv_heads: int
    head_dim: int

    @property
    def merged_columns(self) -> int:
        """Columns of query, key and value together: devices run such siblings side by side."""
        return (self.query_heads + 2 * self.kv_heads) * self.head_dim

    @property
    def layer_weights(self) -> int:
        """Weights of one decoder layer."""
        columns = self.merged_columns + self.query_heads * self.head_dim
        return self.hidden * (columns + 3 * self.intermediate)

    @property
    def settings(self) -> Settings:
        """The dimensions as settings of a probe."""
        return (
            ("hidden", self.hidden),
            ("intermediate", self.intermediate),
            ("query_heads", self.query_heads),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
        )


def _dimensions(*numbers: int) -> Dimensions:
    names = ("hidden", "intermediate", "query_heads", "kv_heads", "head_dim")
    return Dimensions(**dict(zip(names, numbers, strict=True)))


NARROW = _dimensions(256, 256, 2, 1, 64)
WIDTHS = {
    256: _dimensions(256, 768, 4, 2, 64),
    576: _dimensions(576, 1536, 9, 3, 64),  # SmolLM2-135M
    1024: _dimensions(1024, 3072, 16, 8, 64),
    2048: _dimensions(2048, 8192, 32, 8, 64),  # Llama-3.2-1B
    4096: _dimensions(4096, 14336, 32, 8, 128),  # Llama-3.1-8B
    8192: _dimensions(8192, 28672, 64, 8, 128),  # Llama-3.1-70B
}
SIZES = {
    "quick": ((2048, 4096), (1024, 2048), (576, 1024), (256, 576), (256,)),
    "full": ((2048, 4096, 8192), (1024, 2048, 4096), (576, 1024, 2048), (256, 576, 1024), (256,)),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What is swept beside the sizes.

    `heads` are (query heads, key-value heads, head dimension) of attention; `experts` are (hidden,
    intermediate, experts, chosen of them); `merged` says whether query, key and value are timed
    as one matrix too; `vocab_depths` counts the widths of which the vocabulary's matrix is timed;
    `batches` are numbers of sequences side by side; `deep_layers` is the depth of a network as deep
    as models are, 0 for none, and for none with norms of queries and keys.
    """

    rows: tuple[int, ...]
    layer_rows: tuple[int, ...]
    awaited_rows: tuple[int, ...]
    attention_rows: tuple[int, ...]
    contexts: tuple[int, ...]
    heads: tuple[tuple[int, int, int], ...]
    experts: tuple[tuple[int, int, int, int], ...]
    tokens: tuple[int, ...]
    host_layers: tuple[int, ...]
    merged: bool
    vocab_depths: int
    batches: tuple[int, ...] = ()
    deep_layers: int = 0


QUICK = Grid(
    rows=(1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 32),
    layer_rows=(1, 2, 5, 9),
    awaited_rows=(1, 5),
    attention_rows=(1, 2, 4, 8, 9, 16),
    contexts=(128, 1024, 4096, 16_384),
    heads=((32, 8, 128),),
    experts=(),
    tokens=(),
    host_layers=(4, 24),
    merged=False,
    vocab_depths=1,
)
FULL = Grid(
    rows=(*range(1, 21), 24, 32, 48, 64),
    layer_rows=(1, 2, 4, 5, 8, 9, 16),
    awaited_rows=(1, 2, 5, 9),
    attention_rows=(1, 2, 3, 4, 8, 9, 16, 32),
    contexts=(128, 1024, 4096, 16_384),
    heads=((32, 8, 128), (64, 8, 128), (32, 32, 128), (32, 8, 64)),
    experts=((2048, 768, 128, 8), (2048, 2048, 32, 4)),
    tokens=(1, 2, 4, 8, 16, 32, 64, 128),
    host_layers=(4, 24),
    merged=True,
    vocab_depths=2,
    batches=(4, 16),
    deep_layers=24,
)
GRIDS = {
    ("quick", False): QUICK,
    ("full", False): FULL,
    ("quick", True): replace(
        QUICK,
        rows=(1, 2, 3, 5, 8),
        attention_rows=(1, 2, 5, 8),
        contexts=(64, 256, 1024),
        heads=((9, 3, 64),),
    ),
    ("full", True): replace(
        FULL,
        rows=(1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17),
        attention_rows=(1, 2, 5, 8, 16),
        contexts=(64, 256, 1024),
        heads=((9, 3, 64), (8, 1, 64), (4, 4, 64)),
        experts=((256, 128, 16, 4),),
        tokens=(1, 2, 4, 8, 16),
        vocab_depths=1,
        batches=(4,),
        deep_layers=0,
    ),
}
