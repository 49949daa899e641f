r"""How the constants of a chip follow from its data sheet, and how far chips stray from that.

Each constant :math:`\theta_n` of a chip c is, in logs, a common value, a slope with the GPU's
generation g (15 is M3), an effect of the chip's size and the chip's own deviation:

.. math::

   \log \theta_{n,c} = \mu_n + \beta_n (g_c - 15) + \gamma_{n, size(c)} + \delta_{n,c}

Bandwidth is a share of the nominal one and unpacking a rate per core, as buses and cores scale
them; overheads are per layer and do not shrink with cores. Every term has a normal prior about 0.
The widths are judgements made before the fit: a memory controller is within some percent of its
kind, an overhead within some tens. A chip without rows keeps :math:`\delta = 0` and its width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from calibrate.published.chips import Chip
from model.units import Array

MIDDLE_GENERATION = 15
SIZE_NAMES = ("", "Pro", "Max", "Ultra")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The prior of one constant: a typical value, and widths in logs of what changes it."""

    value: float
    common: float
    generation: float
    size: float
    chip: float


EFFECTS = {
    "bandwidth_share": Effect(value=0.88, common=0.05, generation=0.03, size=0.07, chip=0.05),
    "unpack_core_s": Effect(value=2e-11, common=0.5, generation=0.15, size=0.2, chip=0.15),
    "layer_s": Effect(value=6e-5, common=0.5, generation=0.15, size=0.3, chip=0.2),
    "experts_layer_s": Effect(value=5e-5, common=0.6, generation=0.15, size=0.3, chip=0.3),
    "recurrent_layer_s": Effect(value=2e-5, common=0.7, generation=0.15, size=0.3, chip=0.3),
    "norm_s": Effect(value=1e-5, common=0.7, generation=0.15, size=0.3, chip=0.2),
    "mixed_unpacking": Effect(value=1.5, common=0.3, generation=0.02, size=0.02, chip=0.3),
    "cache_slowdown": Effect(value=1.3, common=0.4, generation=0.1, size=0.2, chip=0.25),
    "attention_core_s": Effect(value=3e-11, common=0.5, generation=0.1, size=0.05, chip=0.05),
}
"""What is fitted: share of the nominal bandwidth; seconds in which one core unpacks a weight;
seconds of a layer, and on top of it of routed experts, a recurrence and a further norm; how much
longer a weight of llama.cpp's K types or mxfp4 takes to unpack than one of its plain types; how
much longer a byte of a cache takes to read; seconds of a core for an operation of llama.cpp's
attention on Metal, which gives each query head its own threadgroup, so that heads of a group share
no reading (`kernel_flash_attn_ext_vec`)."""


def prior_values() -> Array:
    """Logs of the typical values, in the order of `EFFECTS`."""
    return np.log([effect.value for effect in EFFECTS.values()])


def prior_widths(chips: int) -> Array:
    """Widths of all terms: those of every constant, then the deviations of each chip."""
    common = [
        (each.common, each.generation, *[each.size] * len(SIZE_NAMES)) for each in EFFECTS.values()
    ]
    own = [each.chip for each in EFFECTS.values()]
    return np.concatenate([np.ravel(common), np.tile(own, chips)])


def design(chip: Chip, index: int | None, chips: int) -> Array:
    """Which terms make up each constant of a chip: shape (constants, terms).

    `index` is the chip's place among those with rows; None has no deviation of its own here.
    """
    generation = MIDDLE_GENERATION if chip.gpu is None else chip.gpu.generation
    constants, each = len(EFFECTS), 2 + len(SIZE_NAMES)
    matrix = np.zeros((constants, constants * (each + chips)))
    for row in range(constants):
        matrix[row, each * row] = 1.0
        matrix[row, each * row + 1] = generation - MIDDLE_GENERATION
        matrix[row, each * row + 2 + size_index(chip)] = 1.0
        if index is not None:
            matrix[row, constants * (each + index) + row] = 1.0
    return matrix


def size_index(chip: Chip) -> int:
    """The place of a chip's size among base, Pro, Max and Ultra; of others' chips the first."""
    size = chip.name.partition(" ")[2]
    return SIZE_NAMES.index(size) if size in SIZE_NAMES else 0
