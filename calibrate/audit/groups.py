"""What rows must share to be compared: machine, model and format, whatever they are called."""

from __future__ import annotations

import re

from calibrate.published.names import format_of, target_of
from calibrate.published.refusal import Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.published.runtimes import MLX_ENGINES

_FORMAT_WORDS = re.compile(
    r"[-_ ]*\(?\b(?:(?:mlx[- ])?\d(?:\.\d)?[- ]?bit(?:[- ]?(?:dwq|ud))?|bf16|fp16|mxfp4|dwq|g64"
    r"|instruct|it|moe)\b\)?"
)

_GENERATED = re.compile(r"(\d+)(?:[- ]token decode| (?:new|generated)\b| tokens? (?:greedy|per))")


def model_key(name: str) -> str:
    """The name of a model without its format and its spelling.

    >>> model_key("Qwen 2.5 Coder 7B") == model_key("Qwen2.5-Coder-7B-Instruct")
    True
    >>> model_key("Qwen3.5-27B-4bit"), model_key("Qwen3.5-4B")
    ('qwen3.527b', 'qwen3.54b')
    """
    return re.sub(r"[^a-z0-9.]", "", _FORMAT_WORDS.sub("", name.lower()))


def machine_key(run: PublishedRun) -> tuple[str, float | None] | None:
    """Chip and nominal bandwidth (to a GB/s, which tells a chip's bins apart); None unnamed."""
    if not run.chip:
        return None
    nominal = run.nominal_bandwidth_bytes_per_s
    return run.chip.lower(), None if nominal is None else float(round(nominal / 2e9))


def setting_key(run: PublishedRun) -> tuple[object, ...] | None:
    """Machine, model and format; None where the row leaves one open.

    Names that the evidence tables know are compared by what they stand for, others as written.
    """
    machine = machine_key(run)
    if machine is None or not run.target or not run.quant:
        return None
    target, stored_as = target_of(run), format_of(run)
    name = model_key(run.target) if isinstance(target, Refusal) else target.architecture.name
    quant = run.quant.lower() if isinstance(stored_as, Refusal) else stored_as.name
    return machine, name, quant


def framework(runtime: str) -> str | None:
    """Whose kernels run: the rest of a tool's name is a server or a loop around them.

    >>> framework("vllm-mlx"), framework("LM Studio mlx-engine"), framework("llama.cpp (Metal)")
    ('mlx', 'mlx', 'llama.cpp')
    >>> framework("ds4 (Metal)")
    """
    words = runtime.lower()
    if words.startswith(MLX_ENGINES) or "mlx" in words:
        return "mlx"
    return next((name for name in ("llama.cpp", "vllm", "pytorch") if name in words), None)


def reach(run: PublishedRun) -> float:
    """The context that a run ends at: its prompt and what it generated, as far as it says."""
    return (run.context_tokens or 0.0) + max(generated_tokens(run), default=0)


def generated_tokens(run: PublishedRun) -> list[int]:
    """The counts of generated tokens that a row's text states."""
    text = " ".join((run.task, run.notes, run.locator))
    return [int(number) for number in _GENERATED.findall(text)]
