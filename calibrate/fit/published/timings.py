"""Published runs as timings of one plain pass, and which of them a fit may learn from.

A run is learned from if it is of plain decoding of one sequence (or states the plain baseline of
a strategy), its target, chip and runtime are known, and nothing says that it measured something
else than a cold machine with the weights in memory:

* low trust is refused, and so is a baseline of any but high trust: a strategy's author has an
  interest in it;
* a run on a machine that its source calls throttled or heated, or whose notes say that it took
  another path than MLX's usual one (16-bit weights computed in 32);
* weights beyond what the stated memory may keep resident;
* a run much slower than the sizes of its series allow (:mod:`calibrate.audit.scaling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from calibrate.audit.scaling import slowed
from calibrate.published.chips import Chip, chip_of
from calibrate.published.conditions import UNSTATED_CONTEXT_TOKENS, hot, said_of
from calibrate.published.formats import is_mean
from calibrate.published.names import target_of
from calibrate.published.refusal import Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.published.runtimes import runtime_family, split_family
from model.machine.working_set import NEWER_LIMITS, recommended_bytes
from model.network.checkpoint import Checkpoint

LLAMA_CPP = "llama.cpp"
REFERENCE_ENGINES = ("mlx-lm", LLAMA_CPP)
"""Engines that a prediction is for; others may differ from them by a few percent."""
OTHER_PATHS = ("fp32 path",)
"""Ways through the runtime that change one row too; how several rows ran spares a baseline."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One plain pass: who ran what where, and the seconds it took."""

    run_id: str
    chip: Chip
    engine: str
    target: Checkpoint
    context: float
    seconds: float


def kernels_of(runtime: str) -> str:
    """The kernels of a family of runtimes; plain passes know no releases.

    >>> kernels_of("mlx-0.32"), kernels_of("mlx-0.32-cuda"), kernels_of("llama.cpp-cuda")
    ('mlx', 'mlx-cuda', 'llama.cpp-cuda')
    """
    name, back_end = split_family(runtime)
    kernels = name.partition("-")[0]
    return kernels if back_end == "metal" else f"{kernels}-{back_end}"


def timings(rows: Iterable[PublishedRun], kernels: str) -> tuple[Timing, ...]:
    """What a fit of these kernels may learn from, in the order of the rows; equal ones once."""
    found: dict[tuple[str, Checkpoint, float, str, float], Timing] = {}
    given = tuple(rows)
    slow = slowed(given)
    for row in given:
        if row.id in slow:
            continue
        for timing in _timings_of(row, kernels):
            key = timing.chip.label, timing.target, timing.seconds, timing.engine, timing.context
            found.setdefault(key, timing)
    return tuple(found.values())


def _timings_of(row: PublishedRun, kernels: str) -> Iterator[Timing]:
    rate = plain_rate(row)
    if rate is None or is_unusual(row):
        return
    runtime, chip = runtime_family(row), chip_of(row)
    if isinstance(runtime, Refusal) or isinstance(chip, Refusal) or chip.cores is None:
        return
    if kernels_of(runtime) != kernels:
        return
    target = target_of(row)
    if isinstance(target, Refusal) or not is_resident(target, row.memory_bytes):
        return
    if is_mean(target.weight_format):  # what its kernels cost is a mixture's, and not told
        return
    yield Timing(
        run_id=row.id,
        chip=chip,
        engine=engine_of(row.runtime),
        target=target,
        context=UNSTATED_CONTEXT_TOKENS if row.context_tokens is None else row.context_tokens,
        seconds=1.0 / rate,
    )


def plain_rate(row: PublishedRun) -> float | None:
    """Tokens per second of plain decoding that a run states, itself or as its baseline."""
    if row.strategy == "plain":
        learned = row.trust != "low" and row.batch == 1
        return row.decode_tokens_per_s or None if learned else None
    learned = row.trust == "high" and row.batch == 1 and row.strategy != "batch"
    return row.baseline_tokens_per_s or None if learned else None


def is_unusual(row: PublishedRun) -> bool:
    """Whether a run's source or notes say that the machine was hot, or ran something else."""
    return hot(row) is not None or any(word in said_of(row) for word in OTHER_PATHS)


def is_resident(target: Checkpoint, memory_bytes: float | None) -> bool:
    """Whether the weights may stay in memory; unknown memory is taken to be enough."""
    if memory_bytes is None:
        return True
    return target.total_bytes <= recommended_bytes(round(memory_bytes), macos=NEWER_LIMITS)


def engine_of(runtime: str) -> str:
    """The engine in a runtime's text: its first word, or `mlx-lm` and `llama.cpp` themselves."""
    lowered = runtime.lower()
    known = next((name for name in REFERENCE_ENGINES if lowered.startswith(name)), None)
    return known or lowered.split()[0]
