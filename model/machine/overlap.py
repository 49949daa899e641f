"""Two costs on one device: together at least the larger, at most the sum."""

from __future__ import annotations

import math

import numpy as np

from model.units import Quantity


def larger(one: Quantity, other: Quantity) -> Quantity:
    """The larger of two, elementwise; of two numbers without a detour through arrays."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        return max(one, other)
    return np.maximum(one, other)


def overlapped(first_s: Quantity, second_s: Quantity, overlap: float) -> Quantity:
    r"""Time of two costs that overlap with exponent p, elementwise.

    .. math:: t = (a^p + b^p)^{1/p}, \qquad \max(a, b) \le t \le a + b

    p = inf is perfect overlap (the roofline of Williams, Waterman and Patterson, 2009), p = 1 is
    none. Measured kernels lie between, because loads and arithmetic share issue slots. The
    exponent is one number per law: it describes a kernel, not a machine.

    >>> [float(overlapped(3.0, 4.0, overlap)) for overlap in (1.0, 2.0, math.inf)]
    [7.0, 5.0, 4.0]
    """
    longer_s = larger(first_s, second_s)
    if math.isinf(overlap):
        return longer_s
    smaller = np.minimum(first_s, second_s)
    # The ratio form cannot overflow and keeps p = 1 exact. A free pair of costs takes no time.
    ratio = smaller / np.where(longer_s > 0, longer_s, 1.0)
    return longer_s * (1.0 + ratio**overlap) ** (1.0 / overlap)
