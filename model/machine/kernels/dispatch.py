"""Which kernel MLX runs for M rows of a matrix, by back end, GPU, release and format family.

MLX chooses a kernel for each matrix from its depth and columns, the number of rows, and the
generation and size of the GPU; the choice changed from release to release. The tables are data
(`data/kernels/*.toml`, each line with its source); this module answers questions to them. A table
says which kernel runs and on which tiles, not how fast: rates belong to a machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from model.catalog import kernel_data
from model.machine.kernels.gpu import Gpu
from model.machine.kernels.releases import Release, priced_release
from model.machine.kernels.tables import BACK_ENDS, lines_for
from model.typed_json import record_from_json

ANY_COLUMNS = 2**62
PARTITION_DEPTH, PARTITION_COLUMNS = 16, 32
"""Of a threadgroup's tile, by which split K counts."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel's tile, whether it pads, what a further tile reads again; `rate` prices it.

    `effort` is the time of a product over that in the tile that the rate is of, `busy_columns` the
    columns that each core needs to be busy, and the partitions those into which it cuts K.
    A `library` chooses among kernels of its own.
    """

    name: str
    tile_rows: float
    pads: bool
    reread: float
    rate: str
    effort: float = 1.0
    busy_columns: float = 0.0
    least_partitions: int = 1
    most_partitions: int = 1
    library: bool = False

    def partial_sums(self, *, depth: int, columns: int) -> int:
        """Partial sums of each output: the partitions of K, 0 where it is left whole.

        mlx v0.31.2, `steel_gemm_splitk_axpby`, for one tile of rows.

        >>> split = Kernel(name="", tile_rows=16, pads=True, reread=1.0, rate="steel",
        ...                least_partitions=2, most_partitions=32)
        >>> [split.partial_sums(depth=depth, columns=4096) for depth in (4096, 11008, 14336)]
        [2, 8, 8]
        """
        if self.most_partitions == 1:
            return 0
        wanted = depth // PARTITION_DEPTH // math.ceil(columns / PARTITION_COLUMNS)
        power = 1 << max(wanted - 1, 0).bit_length()
        return min(max(self.least_partitions, power), self.most_partitions)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KernelUse:
    """A kernel and the rows it serves; `last_row` None is any number."""

    kernel: Kernel
    first_row: int
    last_row: int | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchLine:
    """A line of the dispatch table: a kernel, and the row or the limit from which it serves.

    A `deep` line is of matrices with at least as many inputs as outputs.
    """

    families: tuple[str, ...]
    kernel: str
    first_row: int
    from_limit: bool
    most_columns: int
    deep: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The row from which a quantized product is tiled, by the size of its matrix."""

    small: int
    medium: int
    large: int

    @property
    def all(self) -> frozenset[int]:
        """The limits of every size."""
        return frozenset((self.small, self.medium, self.large))

    def of(self, *, depth: int, columns: int) -> int:
        """The limit of a matrix."""
        return getattr(self, size_class(depth=depth, columns=columns))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LimitLine:
    """A line of the limits."""

    first_rows: Limits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """The choices of one release of MLX on one back end and GPU.

    `gpu` is None where a choice does not depend on it (CUDA and CPU).
    """

    back_end: str
    release: Release
    gpu: Gpu | None

    def kernels(self, family: str, *, depth: int, columns: int) -> tuple[KernelUse, ...]:
        """The kernels that serve a matrix of this format family, by rows; () if not tabled.

        `family` is that of a weight format; float is 16 bits here, and 32 bits as well before
        there was `gemv_wide`.

        >>> m3 = Dispatch(back_end="metal", release=(0, 32, 4),
        ...               gpu=Gpu(generation=15, size="g", cores=10))
        >>> [(use.kernel.name, use.first_row)
        ...  for use in m3.kernels("affine", depth=4096, columns=14336)]
        [('qmv', 1), ('qmv_wide', 2), ('qmm', 13)]
        """
        return _kernels(self, family, depth, columns)

    def tiled_apart_from(self, family: str) -> int | None:
        """Rows of a batch from which its sequences are tiled apart; None where they share."""
        table: dict[str, int] = kernel_data(self.back_end).get("tiled_apart_from", {})
        return table.get(family)

    @property
    def limits(self) -> Limits | None:
        """The rows from which quantized products are tiled, where their size matters."""
        return _limits(self)


def size_class(*, depth: int, columns: int) -> str:
    """The class in which MLX looks up the limit of a matrix: small, medium or large.

    >>> size_class(depth=4096, columns=4096), size_class(depth=4096, columns=14336)
    ('medium', 'large')
    """
    bounds = kernel_data("metal")["size_bounds"].items()
    return next((name for name, most in bounds if max(depth, columns) <= most), "large")


def dispatch_of(back_end: str, runtime: str, gpu: Gpu | None) -> Dispatch | None:
    """The choices of a profile's runtime; None where the tables do not cover it."""
    release = priced_release(runtime)
    if release is None or back_end not in BACK_ENDS or (back_end == "metal" and gpu is None):
        return None
    dispatch = Dispatch(back_end=back_end, release=release, gpu=gpu)
    return dispatch if dispatch.kernels("affine", depth=4096, columns=4096) else None


@lru_cache(maxsize=1024)
def _kernels(dispatch: Dispatch, family: str, depth: int, columns: int) -> tuple[KernelUse, ...]:
    limits = dispatch.limits
    limit = None if limits is None else limits.of(depth=depth, columns=columns)
    lines = lines_for(
        DispatchLine,
        "dispatch",
        *(dispatch.back_end, dispatch.release, dispatch.gpu),
        first_row=0,
        from_limit=False,
        most_columns=ANY_COLUMNS,
        deep=False,
    )
    by_row: dict[int, str] = {}
    for line in lines:
        first_row = limit if line.from_limit else line.first_row
        served = columns <= line.most_columns and (depth >= columns or not line.deep)
        if family in line.families and served and first_row is not None:
            by_row[first_row] = line.kernel
    first_rows = sorted(by_row)
    return tuple(
        KernelUse(
            kernel=_kernel(dispatch.back_end, by_row[first_row]),
            first_row=first_row,
            last_row=following - 1 if following else None,
        )
        for first_row, following in zip(first_rows, [*first_rows[1:], 0], strict=False)
    )


def _kernel(back_end: str, name: str) -> Kernel:
    fields = {"rate": name, "name": name, **kernel_data(back_end)["kernels"][name]}
    return record_from_json(Kernel, fields, f"{back_end} kernel {name}")


@lru_cache(maxsize=64)
def _limits(dispatch: Dispatch) -> Limits | None:
    lines = lines_for(LimitLine, "limits", dispatch.back_end, dispatch.release, dispatch.gpu)
    return lines[0].first_rows if lines else None
