"""How many columns fill a device with a tiled kernel: told by all shapes of a format together.

A tile of rows is multiplied by some columns on each core, so a matrix with fewer columns than all
cores take at once leaves some idle (:mod:`model.machine.row_law`). That is the kernel's doing, not
the shape's: classes of shapes that are fitted apart find fills a factor of four apart, which fit
one tile of rows alike and sixteen sequences with tiles of their own not at all. So the rates of
each class are its own, and the fill is the one with which all classes together are met best.
Heads are left out: they are so wide that several tiles share a core.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from calibrate.fit.curves import curves
from calibrate.fit.observations import Observations
from model.machine.kernels.dispatch import KernelUse
from model.machine.row_law import Shape

COMMON_FILLS = (0.0, *np.geomspace(1024.0, 65_536.0, 13).tolist())
"""Half octaves, and none."""


def common_fills(
    seen: Mapping[str, Observations], known: Mapping[str, tuple[KernelUse, ...]]
) -> dict[int, float]:
    """The fill of each padding kernel of one format, by its first row.

    Both are by class of shapes, and timings in row order. Kernels that not all classes have in
    common are left to the classes themselves.
    """
    told = {shape: each for shape, each in seen.items() if shape != Shape.HEAD}
    uses = {known[shape] for shape in told}
    if len(uses) != 1:
        return {}
    [shared] = uses
    found: dict[int, float] = {}
    for use in shared:
        if use.kernel.pads and not use.kernel.library:
            costs = [misfits(each, use) for each in told.values()]
            found[use.first_row] = COMMON_FILLS[int(np.argmin(np.sum(costs, axis=0)))]
    return found


def misfits(observations: Observations, use: KernelUse) -> list[float]:
    """The least misfit that each fill leaves on the timings of one kernel; rates are free.

    Nothing is left where no form is that kernel's.
    """
    end = math.inf if use.last_row is None else use.last_row + 1
    start, stop = np.searchsorted(observations.rows, [use.first_row, end])
    part = observations.part(int(start), int(stop))
    if not len(part.rows):
        return [0.0] * len(COMMON_FILLS)
    library = curves(part, math.inf, COMMON_FILLS)
    own = library.of_kernel(use.kernel)
    if own is None:
        return [0.0] * len(COMMON_FILLS)
    return [
        library.best(0, len(part.rows), 0.0, own & library.of_fill(fill))[1]
        for fill in COMMON_FILLS
    ]
