"""A published run from a few cells, for tests; the others are not stated."""

from __future__ import annotations

from calibrate.published.run_row import PublishedRun, run_from_cells

PLAIN = {
    "id": "X1",
    "chip": "M3",
    "gpu_cores": "10",
    "memory_gb": "16",
    "runtime": "mlx-lm",
    "runtime_version": "mlx 0.32.0",
    "target_model": "Llama-3.1-8B-Instruct",
    "quant": "4bit",
    "strategy": "plain",
    "decode_tok_s": "18",
    "source_url_or_repo": "github:someone/something",
    "date": "2026-08-01",
    "trust": "high",
}
SPECULATIVE = PLAIN | {
    "strategy": "speculative",
    "draft_model": "Llama-3.2-1B 4bit",
    "k": "2",
    "tokens_per_pass": "2.0",
    "speedup": "1.2",
}


def published(cells: dict[str, str] | None = None, **changed: str) -> PublishedRun:
    """The plain run with other cells."""
    return run_from_cells((PLAIN if cells is None else cells) | changed, "here, row 2")
