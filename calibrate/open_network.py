"""From what a person names to a network that runs: real weights where they are, else random."""

from __future__ import annotations

from pathlib import Path

from calibrate.networks import Network, load_network, random_network
from calibrate.smollm2 import AS_STORED, smollm2
from model.errors import InputError
from model.network.target import load_config

WEIGHTS = ("auto", "random", "real")
SMOLLM2 = "smollm2-135m"


def open_network(spec: str, format_name: str | None, weights: str = "auto") -> Network:
    """The network of a target.

    A folder with safetensors has real weights, and so has SmolLM2-135M when they are asked for;
    anything else gets random ones, which cost the same and accept nothing.

    Raises:
        InputError: there is no such target or format, or no real weights although asked for.
    """
    folder = Path(spec).expanduser()
    has_weights = folder.is_dir() and any(folder.glob("*.safetensors"))
    if weights == "real" and spec.lower() == SMOLLM2:
        return smollm2(format_name or AS_STORED)
    if weights == "real" and not has_weights:
        raise InputError(
            f"target {spec}",
            "has no weights on this machine",
            f"give a folder with safetensors, or {SMOLLM2}",
        )
    if has_weights and weights != "random":
        return load_network(folder)
    return random_network(load_config(spec).config, format_name or "4bit", name=spec)
