"""From what a person names to a network that runs: real weights where they are, else random."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from calibrate.networks import Network, load_network, random_network
from calibrate.smollm2 import AS_STORED, smollm2
from model.errors import InputError
from model.network.checkpoint import Checkpoint
from model.network.target import load_config, load_target

WEIGHTS = ("auto", "random", "real")
SMOLLM2 = "smollm2-135m"
RANDOM_FORMAT = "4bit"
"""What random weights are stored in unless something else is asked for."""


def open_network(spec: str, format_name: str | None, weights: str = "auto") -> Network:
    """The network of a target.

    A folder with safetensors has real weights, and so has SmolLM2-135M when they are asked for;
    anything else gets random ones, which cost the same and accept nothing.

    Raises:
        InputError: there is no such target or format, or no real weights although asked for.
    """
    folder = Path(spec).expanduser()
    has_weights = holds_weights(folder)
    if weights == "real" and spec.lower() == SMOLLM2:
        return smollm2(format_name or AS_STORED)
    if weights == "real" and not has_weights:
        raise InputError(
            f"target {spec}",
            "has no weights on this machine",
            f"give a folder with safetensors, or {SMOLLM2}",
        )
    if has_weights and weights != "random":
        return replace(load_network(folder), name=spec)
    return random_network(load_config(spec).config, format_name or RANDOM_FORMAT, name=spec)


def checkpoint_of(spec: str, format_name: str | None, weights: str = "auto") -> Checkpoint:
    """What `open_network` would hold in memory, known without opening it.

    Raises:
        InputError: there is no such target or format, or the model does not know its parts.
    """
    if weights == "real" and spec.lower() == SMOLLM2:
        return load_target(spec, format_name or AS_STORED)
    if weights != "random" and holds_weights(Path(spec).expanduser()):
        return load_target(spec)
    return load_target(spec, format_name or RANDOM_FORMAT)


def holds_weights(folder: Path) -> bool:
    """Whether a folder has weights of its own."""
    return folder.is_dir() and any(folder.glob("*.safetensors"))
