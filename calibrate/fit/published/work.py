"""What one plain pass makes a machine do: the coefficients of every constant of a profile.

A plain pass is linear in the inverse bandwidths and the dispatch times of a machine as long as
each kernel for one row has an effective bandwidth and no other rate. Its coefficients are read
off the model itself: a machine on which entry j of every array charges for term j alone is priced
by the same code as any other. So a fit and a prediction cannot disagree.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from model.machine.machine import Machine
from model.machine.overheads import Device, Host
from model.machine.row_law import Regime, RowLaw, Shape
from model.network.checkpoint import Checkpoint
from model.strategies.plain import Plain
from model.units import Array

FORMATS = {
    "affine": 6.0,
    "4bit": 4.5,
    "8bit": 8.5,
    "gguf-q4_0": 4.5,
    "fp": 4.25,
    "float": 16.0,
}
"""Row laws of a published profile, and bits per weight of each; affine is of 5, 6 and odd bits."""
LAYER_TERMS = ("layer_s", "experts_layer_s", "recurrent_layer_s", "norm_s")
COUNTED = (*LAYER_TERMS, "kernel_s", "pass_s", "logit_s")
TERMS = (*FORMATS, "cache", "attention", *COUNTED)
"""What a plain pass is charged for; bytes by format and of caches, operations of attention, then
counts."""


def _alone(term: str) -> Array:
    return np.array([1.0 if each == term else 0.0 for each in TERMS])


def _law(bytes_term: str, flops_term: str = "") -> RowLaw:
    def unit(term: str) -> Array:
        return np.array([1.0 if each == term else math.inf for each in TERMS])

    one_row = Regime(
        first_row=1,
        tile_rows=1.0,
        pads=False,
        bandwidth_bytes_per_s=unit(bytes_term),
        flops_per_s=unit(flops_term),
    )
    return RowLaw(overlap=math.inf, rows_measured=1, regimes=(one_row,))


_UNIT_MACHINE = Machine(
    name="unit",
    chip="",
    runtime="",
    memory_bytes=0,
    recommended_working_set_bytes=None,
    activation_bytes=2,
    context_measured=1,
    laws={(name, Shape.WIDE): _law(name) for name in FORMATS},
    submissions={},
    attention=_law("cache", "attention"),
    device=Device(more_rows_layer_s=0.0, element_s=0.0, **{term: _alone(term) for term in COUNTED}),
    host=Host(
        build_layer_s=0.0,
        build_pass_s=0.0,
        submit_layer_s=0.0,
        submit_pass_s=0.0,
        sync_s=0.0,
        reshape_s=0.0,
    ),
)


@lru_cache(maxsize=2048)
def work_of(target: Checkpoint, context: float) -> Array:
    """Bytes and counts of one plain pass, in the order of `TERMS`."""
    one = Plain().round(target, _UNIT_MACHINE, context)
    return np.broadcast_to(np.asarray(one.round_s, dtype=float), (len(TERMS),))
