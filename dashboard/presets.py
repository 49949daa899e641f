"""Settings to start from: what the dashboard opens with, and the experiments of two articles."""

from __future__ import annotations

from collections.abc import Mapping

from model.articles.bench import ARTICLE_RUNTIME, DRAFT, TARGET
from model.articles.diffusion import MODEL
from model.articles.layer_skip_cells import MODELS
from model.machine.profile_store import DEFAULT_MACHINE

ARTICLE = {"machine": DEFAULT_MACHINE, "runtime": ARTICLE_RUNTIME, "context": 512}

DIFFUSION = "Article: diffusion"

PRESETS: Mapping[str, Mapping[str, str | int | float]] = {
    "Article: a 1B draft for an 8B": {**ARTICLE, "target": TARGET, "draft": DRAFT},
    "Article: skipped layers": {**ARTICLE, "target": MODELS[0], "draft": ""},
    DIFFUSION: {**ARTICLE, "target": MODEL, "draft": ""},
}
"""Values of the controls by their keys; those that are not named go back to their defaults."""
