"""A machine as the cost model sees it: row laws, the price of submitting work, and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from model.checkpoint import Checkpoint
from model.errors import InputError
from model.row_law import RowLaw, Shape
from model.units import Quantity
from model.weight_format import WeightFormat

# Where a class of shapes was not measured, the nearest one that was stands in for it.
STAND_INS = {
    Shape.SQUARE: (Shape.SQUARE, Shape.WIDE, Shape.TALL, Shape.HEAD),
    Shape.WIDE: (Shape.WIDE, Shape.SQUARE, Shape.HEAD, Shape.TALL),
    Shape.TALL: (Shape.TALL, Shape.SQUARE, Shape.WIDE, Shape.HEAD),
    Shape.HEAD: (Shape.HEAD, Shape.WIDE, Shape.SQUARE, Shape.TALL),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Device:
    """What the accelerator charges for, besides matrix products.

    * `kernel_s`: the floor of one kernel in a dependent chain.
    * `layer_s`: everything else in a decoder layer (norms, rotary embedding, cache update,
      activation, residuals), without its row-proportional share.
    * `more_rows_layer_s`: what a layer costs on top as soon as it has several rows, for masks and
      for copies that a single row does not need.
    * `element_s`: per row and hidden unit of a layer, the element-wise traffic.
    * `pass_s`: once per pass (embedding lookup, final norm, sampling).
    * `logit_s`: per row and vocabulary entry, the sampling traffic.
    """

    kernel_s: Quantity
    layer_s: Quantity
    more_rows_layer_s: Quantity
    element_s: Quantity
    pass_s: Quantity
    logit_s: Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Host:
    """What the CPU charges for telling the accelerator what to do.

    A pass is first *built* as a graph (Python), then *submitted* (encoded, kernel by kernel,
    while the device already works). Reading a result costs `sync_s`. `reshape_s` is what a pass
    of several rows costs before its first kernel when it meets a context it has not met before,
    as every round of a strategy does: MLX's CUDA back end has cuDNN plan attention anew for each
    shape of queries and keys (mlx 0.32, `cuda/scaled_dot_product_attention.cpp`); elsewhere it
    is nothing.
    """

    build_layer_s: Quantity
    build_pass_s: Quantity
    submit_layer_s: Quantity
    submit_pass_s: Quantity
    sync_s: Quantity
    reshape_s: Quantity


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Submission:
    """What the host pays to submit one matrix product of a format, beyond the layer's share.

    The kernel for one row and those for several come from different libraries on some devices,
    and so differ in price: a cuBLAS product costs the host several times MLX's own kernels.
    """

    one_row_s: Quantity
    more_rows_s: Quantity

    def at(self, rows: Quantity) -> Quantity:
        """The price at `rows`, a number or an array."""
        return np.where(np.greater(rows, 1), self.more_rows_s, self.one_row_s)


FREE = Submission(one_row_s=0.0, more_rows_s=0.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Machine:
    """One machine and runtime; every quantity is a number, or an array over draws of a fit.

    `laws` are keyed by weight format (a name, or the family of kernels that serves it) and
    shape, `submissions` by weight format. `attention` is the law whose matrix is the cache.
    `activation_bytes` is the size of an activation and of an entry of the cache.
    """

    name: str
    chip: str
    runtime: str
    memory_bytes: int
    recommended_working_set_bytes: int | None
    activation_bytes: int
    context_measured: int
    laws: Mapping[tuple[str, Shape], RowLaw]
    submissions: Mapping[str, Submission]
    attention: RowLaw
    device: Device
    host: Host

    def law(self, weight_format: WeightFormat, shape: Shape) -> RowLaw:
        """The row law of a format and shape.

        A format that was not measured under its own name is served by one of the same kernels
        and bits in other groups, then by its whole family where a profile states one.

        Raises:
            InputError: nothing was measured for this format; a price would be made up.
        """
        for key in format_keys(weight_format):
            for stand_in in STAND_INS[shape]:
                if (key, stand_in) in self.laws:
                    return self.laws[key, stand_in]
        name = weight_format.name.removesuffix("-s32")
        measured = ", ".join(sorted({key for key, _ in self.laws}))
        raise InputError(
            f"format {name}",
            f"was never measured on {self.name}",
            f"measured: {measured}; or run `tokroof calibrate --formats {name}`",
        )

    def submission(self, weight_format: WeightFormat) -> Submission:
        """What submitting a product of this format costs the host; nothing if never measured."""
        keys = format_keys(weight_format)
        return next((self.submissions[key] for key in keys if key in self.submissions), FREE)

    def as_run(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint as this machine holds it: with 32-bit activations, all in 32 bits."""
        return checkpoint.in_float32() if self.activation_bytes == 4 else checkpoint


def format_keys(weight_format: WeightFormat) -> list[str]:
    """The names under which a format may have been measured, the closest first."""
    name = weight_format.name.removesuffix("-s32")
    bits = [f"{weight_format.bits}bit"] if weight_format.family == "affine" else []
    return [name, *bits, weight_format.family]
