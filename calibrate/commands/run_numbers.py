"""Numbers of a run as they are typed: lists, probabilities, and the seed of a coin."""

from __future__ import annotations

import argparse

from calibrate.run_settings import MOST_SEED
from model.commands import options as shared
from model.errors import InputError


def read_seed(options: argparse.Namespace) -> int:
    """The seed of the coin."""
    return shared.whole_number("--seed", options.seed or "0", least=0, most=MOST_SEED)


def probability(flag: str, text: str) -> float:
    """A number from 0 to 1."""
    value = shared.number(flag, text)
    if not 0.0 <= value <= 1.0:
        raise InputError(f"{flag} {text}", "is not a probability", "give a number in [0, 1]")
    return value


def whole_numbers(flag: str, text: str, most: int, *, least: int = 1) -> list[int]:
    """A list of whole numbers."""
    return [shared.whole_number(flag, each, least=least, most=most) for each in text.split(",")]
