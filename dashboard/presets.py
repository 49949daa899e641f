"""Settings to start from: what the dashboard opens with, and the experiments of two articles."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.selection import Selection
from model.articles.bench import ARTICLE_RUNTIME, DRAFT, TARGET
from model.articles.diffusion import MODEL
from model.articles.layer_skip_cells import MODELS
from model.machine.profile_store import DEFAULT_MACHINE, own_profiles
from model.progress.vocabulary import Task

DEFAULT = Selection()
NO_DRAFT = "none"
OWN = "the profile's own"
ONE, BY_POSITION, PUBLISHED = "one", "several", "published"
RATES = "0.7,0.6,0.5"
TASKS = tuple(each.value for each in Task)
MEMORIES = (0, 8, 16, 18, 24, 32, 36, 48, 64, 96, 128, 192, 256, 512)
WHOLE_CACHE = "16 bits"
OTHERS = ("draft-head", "block-drafter", "layer-skip", "prompt-lookup")
"""Strategies that draft without a draft model."""
ARTICLE = {"machine": DEFAULT_MACHINE, "runtime": ARTICLE_RUNTIME, "context": 512}

PRESETS: Mapping[str, Mapping[str, str | int | float]] = {
    "Article: a 1B draft for an 8B": {**ARTICLE, "target": TARGET, "draft": DRAFT},
    "Article: skipped layers": {**ARTICLE, "target": MODELS[0], "draft": NO_DRAFT},
    "Article: diffusion": {**ARTICLE, "target": MODEL, "draft": NO_DRAFT},
}
"""Values of the controls by their keys; those that are not named go back to their defaults."""


def opening() -> dict[str, object]:
    """What the controls say when the dashboard opens, by their keys.

    Each is set and not deleted: what is deleted comes back from the address.
    """
    return {
        "machine": next(iter(own_profiles()), DEFAULT_MACHINE),
        "target": DEFAULT.target,
        "target_format": DEFAULT.target_format,
        "draft": DEFAULT.draft,
        "draft_format": DEFAULT.draft_format,
        "known": ONE,
        "acceptance": float(DEFAULT.acceptance),
        "rates": RATES,
        "task": TASKS[0],
        "context": DEFAULT.context,
        "runtime": OWN,
        "memory": MEMORIES[0],
        "cache": WHOLE_CACHE,
        "batch": DEFAULT.batch,
        **{key_of(name): None for name in OTHERS},
    }


def key_of(strategy: str) -> str:
    """The control of the acceptance of a strategy."""
    return f"acceptance_{strategy}".replace("-", "_")
