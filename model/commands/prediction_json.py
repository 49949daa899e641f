"""Predictions and needs in the schema of `predict --json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from model.prediction.need import Need
from model.prediction.prediction import Prediction
from model.progress.published import TaskProgress


def as_json(prediction: Prediction) -> dict[str, Any]:
    """One prediction in the schema of `predict --json`."""
    return {
        "strategy": prediction.strategy,
        "settings": prediction.settings,
        "tokens_per_s": prediction.tokens_per_s,
        "interval_90": prediction.interval_90,
        "speedup": prediction.speedup,
        "speedup_interval_90": prediction.speedup_interval_90,
        "sustained_tokens_per_s": prediction.sustained_tokens_per_s,
        "sustained_interval_90": prediction.sustained_interval_90,
        "tokens_per_pass": prediction.tokens_per_pass,
        "round_s": prediction.round_s,
        "parts_s": dict(prediction.parts_s),
        "bound": prediction.bound.value,
        "verdict": prediction.verdict,
        "fits": prediction.memory.fits,
        "working_set_bytes": prediction.memory.working_set_bytes,
        "origin": prediction.origin.label,
        "warnings": list(prediction.warnings),
    }


def progress_json(published: TaskProgress | None) -> dict[str, Any] | None:
    """Where published progress came from, and how far the pairs lie apart."""
    if published is None:
        return None
    spread = published.tokens_per_pass
    return {
        "method": published.method.value,
        "task": published.task.value,
        "pairs": spread.pairs,
        "tokens_per_pass": {
            "median": spread.median,
            "lowest": spread.lowest,
            "highest": spread.highest,
        },
        "draft_lengths": list(published.draft_lengths),
        "extrapolated": published.extrapolated,
        "rows": [row.id for row in published.rows],
        "sources": list(published.sources),
    }


def need_json(found: Need) -> dict[str, Any]:
    """What a strategy without progress would need."""
    return {
        "strategy": found.strategy,
        "settings": dict(found.settings),
        "reason": found.reason,
        "needed_acceptance": found.needed_acceptance,
        "draft_length": found.draft_length,
        "curve": [asdict(point) for point in found.curve],
        "fits": found.memory.fits,
        "working_set_bytes": found.memory.working_set_bytes,
    }
