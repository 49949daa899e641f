"""Rows that every rule finds clean, for tests to spoil one thing of."""

from __future__ import annotations

from typing import Any

from calibrate.published.run_row import PublishedRun, run_from_cells

# 8.03e9 parameters at 7 bits and 12.4 tok/s: 87 GB/s of an M3's 100. Drafting: 1 + 0.61 x 2 = 2.22.
PLAIN = {
    "id": "p",
    "chip": "M3",
    "gpu_cores": "10",
    "mem_bandwidth_gb_s_nominal": "100",
    "memory_gb": "24",
    "runtime": "mlx-lm",
    "target_model": "Some-8B",
    "target_params_b": "8.03",
    "target_active_params_b": "8.03",
    "quant": "7bit",
    "strategy": "plain",
    "context_tokens": "128",
    "prefill_tok_s": "181.3",
    "decode_tok_s": "12.4",
    "source_url_or_repo": "one",
    "trust": "high",
}
DRAFTED = {
    **PLAIN,
    "id": "d",
    "strategy": "speculative",
    "draft_model": "Some-1B",
    "k": "2",
    "acceptance": "0.61",
    "acceptance_def": "accepted/drafted",
    "tokens_per_pass": "2.22",
    "prefill_tok_s": "",
    "decode_tok_s": "18.6",
    "baseline_tok_s": "12.4",
    "speedup": "1.5",
}
BATCH = {
    **PLAIN,
    "id": "b",
    "strategy": "batch",
    "batch": "4",
    "prefill_tok_s": "",
    "decode_tok_s": "40.0",
    "speedup": "3.33",
}


def plain(**cells: Any) -> PublishedRun:
    return made(PLAIN, cells)


def drafted(**cells: Any) -> PublishedRun:
    return made(DRAFTED, cells)


def batch(**cells: Any) -> PublishedRun:
    return made(BATCH, cells)


def made(kind: dict[str, str], cells: dict[str, Any]) -> PublishedRun:
    assert not cells.keys() - {*kind, *DRAFTED, "model_bytes_gb", "batch", "notes", "task", "date"}
    return run_from_cells(kind | {name: str(value) for name, value in cells.items()}, "a row")
