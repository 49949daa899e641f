r"""Which kernels llama.cpp runs for several rows, and what they cost: stated, not fitted.

On **Metal** (`ggml-metal-ops.cpp`, build b7948):

* 2 to 8 rows: `mul_mv_ext` walks the weights once for each group of at most 5 rows, which are as
  equal as they can be (its table for 6, 7 and 8 rows says 3, 4 and 4).
* 9 rows and more: `mul_mm`, tiles of 64 columns and 32 rows, padded. It does not split the depth,
  so a matrix needs three such tiles for each core before all are busy.
* Routed experts, up to 31 rows: `mul_mv_id`, one product of one row for each (row, expert) pair;
  from 32 rows on `mul_mm_id`, a tile of 32 rows for each expert (`model/data/kernels`).
* Attention, up to 19 rows: `flash_attn_ext_vec`, a threadgroup for each row and query head, so
  that neither rows nor heads of a group share what they read.

On **CUDA** (`mmvq.cu`, `mmq.cu`) vector kernels read the weights once for up to 8 rows and tiled
ones for more, on cores that a GB10 does not keep busy: rows cost what they move themselves.

Rates were read off batched decoding of Qwen2.5-Coder-7B, gemma-3-4b and gpt-oss-20b (ggml-org,
llama-batched-bench, 512 tokens), on an M2 Ultra of 76 cores and on a GB10. One chip of each kind
carries them, so the errors are wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from model.machine.profile import RegimeForm

BATCHED_ON = ("qwen2.5-7b", "gemma-3-4b", "gpt-oss-20b")
"""Networks whose batches at 512 tokens the rates were read off."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CoreRate:
    """An arithmetic rate of each core in FLOP/s, and its relative standard error."""

    flops_per_s: float
    error: float


METAL_FEW_ROWS = CoreRate(flops_per_s=0.06e12, error=0.35)
METAL_MANY_ROWS = CoreRate(flops_per_s=0.28e12, error=0.3)
METAL_TILE_COLUMNS, METAL_TILES_PER_CORE = 64, 3
CUDA_ROWS = CoreRate(flops_per_s=0.75e12, error=0.3)
"""Of a multiprocessor: 2,380 tokens a second of Qwen2.5-Coder-7B's prompts are 36e12 FLOP/s."""
ROWS_S = {
    "metal": {"more_rows_layer_s": (5.5e-5, 2e-5), "element_s": (0.0, 0.0)},
    "cuda": {"more_rows_layer_s": (7e-5, 3e-5), "element_s": (4e-9, 2e-9)},
}
"""What several rows cost a layer, whatever its weights: values and standard errors."""


def metal_regimes(cores: int) -> Iterator[tuple[RegimeForm, CoreRate]]:
    """The kernels from the second row on."""
    few = RegimeForm(first_row=2, tile_rows=5.0, pads=False, reread=1.0, fill_columns=0.0)
    busy_columns = float(METAL_TILE_COLUMNS * METAL_TILES_PER_CORE * cores)
    many = RegimeForm(first_row=9, tile_rows=32.0, pads=True, reread=1.0, fill_columns=busy_columns)
    yield few, METAL_FEW_ROWS
    yield many, METAL_MANY_ROWS


def cuda_regimes() -> Iterator[tuple[RegimeForm, CoreRate]]:
    """One kernel after another, each of which reads the weights once."""
    yield (
        RegimeForm(first_row=2, tile_rows=None, pads=False, reread=0.0, fill_columns=0.0),
        CUDA_ROWS,
    )
