"""SI prefixes for numbers that are read from a file or shown to a person.

Inside the packages everything is in base units: s, byte, FLOP, byte/s, FLOP/s. A quantity is a
float, or an array of floats when one call prices a whole sweep or every draw of a fit.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Quantity: TypeAlias = float | Array

MILLI = 1e-3
MICRO = 1e-6
KILO = 1e3
GIGA = 1e9

MB = 1e6
GB = 1e9
GIB = float(2**30)
