"""`tokroof models`: the networks that can be predicted for, and the bytes of one of them."""

from __future__ import annotations

import argparse
import json

from model import catalog
from model.commands.table import table
from model.network.checkpoint import Checkpoint
from model.network.head_target import heads_of
from model.network.target import load_target
from model.units import GB, GIGA, KILO

LISTED_FORMAT = "4bit"
"""What most people run, and so what the list shows when no format is asked for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare NAME, --format and --json."""
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="one model: a name from the list, a folder with config.json, or hf:owner/name",
    )
    parser.add_argument("--format", help="weight format: bf16, 8bit, 4bit, mxfp4, 4bit-g32, ...")
    parser.add_argument("--json", action="store_true", help="print JSON, every quantity in bytes")


def execute(options: argparse.Namespace) -> int:
    """Print the list, or one model's counts."""
    if options.name is not None:
        checkpoint = load_target(options.name, options.format)
        print(json.dumps(counts(checkpoint), indent=2) if options.json else details(checkpoint))
    elif options.json:
        shipped = [load_target(name, options.format) for name in catalog.architecture_names()]
        print(json.dumps([counts(checkpoint) for checkpoint in shipped], indent=2))
    else:
        print(listing(LISTED_FORMAT if options.format is None else options.format))
    return 0


def counts(checkpoint: Checkpoint) -> dict[str, object]:
    """The record of one model; bytes are those of its format."""
    architecture = checkpoint.architecture
    return {
        "name": architecture.name,
        "format": checkpoint.weight_format.name,
        "params": architecture.params,
        "active_params": architecture.active_params,
        "total_bytes": checkpoint.total_bytes,
        "weight_bytes_per_token": checkpoint.weight_bytes_per_token,
        "kv_bytes_per_token": checkpoint.kv_bytes_per_token,
        "kept_kv_bytes_per_token": checkpoint.kept_kv_bytes_per_token,
        "state_bytes": architecture.state_bytes(checkpoint.cache_element_bytes),
        "layers": len(architecture.layers),
        "source": architecture.source,
    }


def listing(format_name: str) -> str:
    """A line for each shipped model."""
    rows: list[list[str]] = []
    for name in catalog.architecture_names():
        checkpoint = load_target(name, format_name)
        network = checkpoint.architecture
        counted = [billions(network.params), billions(network.active_params)]
        stored = f"{checkpoint.total_bytes / GB:.2f}"
        rows.append([name, *counted, str(len(network.layers)), stored])
    return table(["model", "params", "active", "layers", f"{format_name} GB"], rows)


def details(checkpoint: Checkpoint) -> str:
    """One model for a person to read."""
    architecture = checkpoint.architecture
    limit = architecture.context_limit
    needed, kept = checkpoint.kv_bytes_per_token, checkpoint.kept_kv_bytes_per_token
    state = architecture.state_bytes(checkpoint.cache_element_bytes)
    rows = {
        "parameters": billions(architecture.params),
        "active in a token": billions(architecture.active_params),
        "layers": str(len(architecture.layers)),
        "weights in memory": f"{checkpoint.total_bytes / GB:.3f} GB",
        "read for a token": f"{checkpoint.weight_bytes_per_token / GB:.3f} GB",
        "cache of a token": f"{checkpoint.kv_bytes_per_token / KILO:.1f} kB",
        "kept by mlx-lm": "" if kept == needed else f"{kept / KILO:.1f} kB of a token",
        "recurrent state": f"{state / KILO:.1f} kB" if state else "",
        "context limit": "not stated" if limit is None else f"{limit} tokens",
        "draft heads": ", ".join(heads_of(architecture.name)),
        "source": architecture.source,
    }
    title = f"{architecture.name} ({architecture.model_type}) in {checkpoint.weight_format.name}"
    return "\n".join([title, *(f"  {label:20}{value}" for label, value in rows.items() if value)])


def billions(count: int) -> str:
    """A number of parameters as people say it.

    >>> billions(8_030_261_248), billions(134_515_008)
    ('8.03 B', '0.13 B')
    """
    return f"{count / GIGA:.2f} B"
