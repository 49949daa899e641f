"""What an answer is about, as its first line and as the first fields of its document."""

from __future__ import annotations

from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint


def about_json(target: Checkpoint, machine: Machine) -> dict[str, str]:
    """The target, its format, and where it runs."""
    return {
        "target": target.architecture.name,
        "format": target.weight_format.name,
        "machine": machine.name,
        "runtime": machine.runtime,
    }


def about_text(target: Checkpoint, machine: Machine) -> str:
    """The same in words."""
    return f"{target.label} on {machine.chip} ({machine.runtime})"
