"""What a device and its host charge for besides matrix products: small kernels, and submitting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from model.units import Quantity


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
    * `experts_layer_s`: what a layer of routed experts costs on top, whatever its rows: scores,
      selection, gathers and the weighted sum. 0 where a profile does not tell.
    * `recurrent_layer_s`: the same of a layer with a recurrent mixer: its convolution, gates and
      norms. 0 where a profile does not tell.
    * `norm_s`: a norm beyond the two that every layer of attention has, a kernel that the next
      one waits for. 0 where a profile does not tell.
    * `head_norm_s`: a norm of queries or of keys, which runs beside much else. 0 where a profile
      does not tell.
    * `batch_layer_s`: what a layer costs on top as soon as several sequences share the pass, for
      masks and for an attention that is not one kernel. 0 where a profile does not tell.
    * `unfused_layer_s`: the same of a layer whose rows of one sequence no one kernel attends with
      (`Machine.unfused`). 0 where a profile does not tell.
    * `score_s`: a score that is written to memory and read again, for each row, query head and key
      of such a layer. 0 where a profile does not tell, whose laws then hold it.
    """

    kernel_s: Quantity
    layer_s: Quantity
    more_rows_layer_s: Quantity
    element_s: Quantity
    pass_s: Quantity
    logit_s: Quantity
    experts_layer_s: Quantity = 0.0
    recurrent_layer_s: Quantity = 0.0
    norm_s: Quantity = 0.0
    head_norm_s: Quantity = 0.0
    batch_layer_s: Quantity = 0.0
    unfused_layer_s: Quantity = 0.0
    score_s: Quantity = 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Host:
    """What the CPU charges for telling the accelerator what to do.

    A pass is first *built* as a graph (Python), then *submitted* (encoded, kernel by kernel,
    while the device already works). Reading a result costs `sync_s`. `reshape_s` is what a pass
    of several rows costs before its first kernel when it meets a context it has not met before,
    as every round of a strategy does: MLX's CUDA back end has cuDNN plan attention anew for each
    shape of queries and keys (mlx 0.32, `cuda/scaled_dot_product_attention.cpp`); elsewhere it
    is next to nothing.

    `walk_share` is the part of submitting that comes before the first kernel of a pass: MLX walks
    the whole graph twice, to count who needs what and to put it in order, before it encodes
    anything (mlx 0.32, `transforms.cpp`). Only a pass that is waited for pays for it.

    A loop that stays one pass ahead of its reader does not wait, but reading a token that is there
    already and letting go of what made it takes the host `read_s`.

    Some layers cost more than `build_layer_s` and `submit_layer_s`: one with routed experts, one
    with norms beyond two (each), one of a pass that several sequences share, one with rows that no
    one kernel attends with, and, to submit, one of several rows, and one whose single row a library
    attends with (:mod:`model.machine.kernels.attention`). These, and `read_s`, are 0 where a
    profile does not tell.
    """

    build_layer_s: Quantity
    build_pass_s: Quantity
    submit_layer_s: Quantity
    submit_pass_s: Quantity
    sync_s: Quantity
    reshape_s: Quantity
    walk_share: Quantity = 0.0
    read_s: Quantity = 0.0
    submit_more_rows_layer_s: Quantity = 0.0
    build_experts_layer_s: Quantity = 0.0
    submit_experts_layer_s: Quantity = 0.0
    build_norm_s: Quantity = 0.0
    submit_norm_s: Quantity = 0.0
    build_batch_layer_s: Quantity = 0.0
    submit_batch_layer_s: Quantity = 0.0
    build_unfused_layer_s: Quantity = 0.0
    submit_unfused_layer_s: Quantity = 0.0
    submit_library_attention_s: Quantity = 0.0


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
