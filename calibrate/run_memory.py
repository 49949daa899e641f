"""What a run will hold in memory, before anything of it is allocated."""

from __future__ import annotations

from calibrate.run_settings import Settings
from model.errors import InputError
from model.network.checkpoint import Checkpoint
from model.network.sublayers import without
from model.prediction.memory import BUFFER_BYTES
from model.units import GB

BATCH_COPIES = 2
"""mlx-lm copies the caches of a batch when its prompts are read and decoding begins."""


def needed_bytes(
    settings: Settings,
    target: Checkpoint,
    draft: Checkpoint | None,
    *,
    positions: int,
    shared: bool = False,
) -> float:
    """Weights, caches and buffers of a run whose caches grow to `positions` tokens.

    `shared` says that the draft is the target itself: its weights are held once.
    """
    copies = BATCH_COPIES * settings.batch if settings.batch > 1 else 1
    needed = BUFFER_BYTES + target.total_bytes + copies * float(target.kv_cache_bytes(positions))
    if draft is not None:
        needed += float(draft.kv_cache_bytes(positions)) + (0 if shared else draft.total_bytes)
    if settings.skipped:
        needed += float(without(target, settings.skipped).kv_cache_bytes(positions))
    return needed


def needed_by_mlx_vlm(
    settings: Settings,
    target: Checkpoint,
    head: Checkpoint | None,
    *,
    context: int,
    tokens: int,
) -> float:
    """The same of a decode by mlx-vlm, whose last block or draft may reach beyond the end."""
    drafted = 2 * settings.draft_length + 1 if settings.draft_length else 0
    positions = context + tokens + settings.block + drafted
    return needed_bytes(settings, target, head, positions=positions)


def check_memory(what: str, needed: float, free_bytes: int) -> None:
    """Refuse a run that does not fit: it would be swapped, and time nothing.

    Raises:
        InputError: more is needed than is free.
    """
    if needed > free_bytes:
        wrong = f"needs {needed / GB:.2f} GB with its caches and {free_bytes / GB:.2f} GB are free"
        raise InputError(what, wrong, "give fewer bits, a smaller model or a shorter context")
