"""Prompts: text where there is a tokenizer, and otherwise tokens that only take up room."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.networks import Network
from model.errors import InputError

TEXT = (
    "The lighthouse keeper wrote in his journal every evening. He noted the wind, the height of "
    "the waves, the ships that passed and the colour of the sky. One night in late autumn, when "
    "the fog had not lifted for three days, he heard a bell that did not belong to any buoy he "
    "knew. He took his lantern, went down the spiral stairs and"
)
"""Plain prose, written for this; acceptance depends on what is continued."""


def prompt_tokens(network: Network, count: int, text: str | None = None) -> Sequence[int]:
    """A prompt of `count` tokens; with a text of its own, as many as that has.

    Random weights get consecutive token numbers: what they are does not change the cost.

    Raises:
        InputError: a text for a network that has no tokenizer.
    """
    if text is not None and network.tokenizer is None:
        wrong = f"needs real weights, and those of {network.name} are random"
        raise InputError(f"--prompt {text!r}", wrong, "add --weights real, or leave it out")
    if network.tokenizer is None:
        return [token % network.vocab_size for token in range(1, count + 1)]
    encoded: list[int] = list(network.tokenizer.encode(text or TEXT))
    if text is not None:
        return encoded
    repeats = -(-count // len(encoded))
    return (encoded * repeats)[:count]
