"""What MLX asks of an Apple GPU before it chooses a kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

GENERATIONS = range(13, 31)
"""13 is M1 and 17 is M5; the tables begin with 13."""

SIZES = "gsdp"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """An Apple GPU, from its architecture name `applegpu_g<generation><size>`.

    `size` g is the base chip, s Pro and Max, d Ultra and p a phone's. `cores` is not in that
    name: rates scale with it, the choice of a kernel does not depend on it.
    """

    generation: int
    size: str
    cores: int


def gpu_of(architecture: str, cores: int | None) -> Gpu | None:
    """The GPU of MLX's architecture name; None where it is none of Apple's or its cores unknown.

    >>> gpu_of("applegpu_g15g", 10)
    Gpu(generation=15, size='g', cores=10)
    >>> gpu_of("sm_90", None) is None
    True
    """
    named = re.fullmatch(r"applegpu_g(\d{2})([gsdp])", architecture)
    if named is None or cores is None or int(named[1]) not in GENERATIONS:
        return None
    return Gpu(generation=int(named[1]), size=named[2], cores=cores)
