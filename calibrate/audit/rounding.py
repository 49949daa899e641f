"""How far a printed number may be from what was measured.

A printed number stands for every value that rounds to it. An inequality is broken only if it is
broken by all of them, so each side is moved to the end of its interval that is kindest.
"""

from __future__ import annotations

from decimal import Decimal

COUNTING = 0.01
"""Some tools count the first token, which the prefill made: one in a hundred or more."""


def half_unit(value: float) -> float:
    """Half of the last digit that a number shows.

    A whole number may have been printed without a decimal and read with one, so it is taken to be
    good to half a unit.

    >>> half_unit(1.95), half_unit(31.0), half_unit(0.044)
    (0.005, 0.5, 0.0005)
    """
    digits = Decimal(repr(value)).normalize().as_tuple()
    exponent = digits.exponent
    return 0.5 * 10.0 ** min(exponent if isinstance(exponent, int) else 0, 0)


def least(value: float) -> float:
    """The smallest value that is printed so; never below 0."""
    return max(0.0, value - half_unit(value))


def most(value: float) -> float:
    """The largest value that is printed so."""
    return value + half_unit(value)


def significant_digits(value: float) -> int:
    """Digits that a number shows; zeros at its end may be padding and are not counted.

    >>> significant_digits(42.42), significant_digits(120.0), significant_digits(0.05)
    (4, 2, 1)
    """
    return len(Decimal(repr(value)).normalize().as_tuple().digits)
