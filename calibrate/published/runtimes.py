"""Which kernels ran a published run: the family of its runtime.

An MLX engine runs the kernels of the MLX it was built with. Where a run states that release, it
decides; else the date does: mlx 0.31.0, from which several rows of 16-bit weights fill tiles of 64
rows, came out on 2026-02-27, and mlx 0.32.0, which reads weights once for several rows, on
2026-07-07. An earlier run is of `mlx-0.30` or `mlx-0.31` and a later one is taken as `mlx-0.32`,
although an engine may lag behind. A period that holds such a day leaves open which, unless one row
alone is asked for, which all serve with the same kernel. Releases before 0.30 are priced as 0.30.
"""

from __future__ import annotations

import re

from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun

SPLIT_K_UNTIL, WIDE_KERNEL_SINCE = "2026-02-27", "2026-07-07"
OLDEST_MLX, OLD_MLX, NEW_MLX = "mlx-0.30", "mlx-0.31", "mlx-0.32"
MLX_ENGINES = (
    *("mlx", "redrafter-mlx", "rapid-mlx", "ax-engine", "dflash-mlx", "lm studio mlx-engine"),
    *("vllm-mlx", "mtplx", "lightning-mlx", "omlx", "unsloth mlx"),
)
"""How the names of engines begin that run MLX's kernels."""
DS4 = "ds4"
"""An engine for DeepSeek V4 whose matrix kernels are llama.cpp's and whose attention is its own.

Its README says that it does not link ggml and kept certain kernels. Priced like llama.cpp, four
short runs on M3 Ultra and M5 Max come out 0.6 to 3.2 % fast, and longer ones 32 to 89 %: its
attention and its indexer take what no kernel of llama.cpp was fitted to.
"""
OWN_KERNELS = ("multi-row attention kernel", "small-m verify kernel", "rowexact")

_STATED_MLX = re.compile(r"(?<![\w-])mlx ~?(\d+)\.(\d+)")
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?(?:/(\d{2}))?)?(\+| thread; rows added)?")


def runtime_family(run: PublishedRun) -> str | Refusal:
    """`mlx-0.30` to `mlx-0.32` or `llama.cpp`; on other back ends with their name behind it."""
    name = f"{run.runtime} {run.runtime_version}".lower()
    if run.runtime.lower().startswith("llama.cpp"):
        return f"llama.cpp{_back_end(run, name)}"
    if run.runtime.lower().startswith(DS4):
        text = f"{run.runtime} has its own kernels (attention)"
        return Refusal(reason=Reason.UNKNOWN_RUNTIME, text=text)
    if not run.runtime.lower().startswith(MLX_ENGINES):
        return Refusal(reason=Reason.UNKNOWN_RUNTIME, text=run.runtime or "not stated")
    several_rows = run.strategy != "plain" or run.batch > 1
    own = next((kernel for kernel in OWN_KERNELS if kernel in name), None)
    if own and several_rows:
        return Refusal(reason=Reason.UNKNOWN_RUNTIME, text=f"has its own kernels ({own})")
    family = _stated(name) or _dated(run.date)
    if family is None and several_rows:
        text = f"{run.runtime} of {run.date or 'no date'}, of several possible MLX"
        return Refusal(reason=Reason.UNKNOWN_RUNTIME, text=text)
    return (family or NEW_MLX) + _back_end(run, name)


def _back_end(run: PublishedRun, name: str) -> str:
    """Empty for Metal, else what is appended to a family."""
    for back_end in ("cuda", "vulkan", "rocm"):
        if back_end in name:
            return f"-{back_end}"
    on_a_mac = re.match(r"(Apple )?[MA]\d", run.chip) is not None
    return "" if on_a_mac or not run.chip or "metal" in name else "-other"


def _stated(name: str) -> str | None:
    found = _STATED_MLX.search(name)
    if found is None:
        return None
    release = int(found[1]), int(found[2])
    if release >= (0, 32):
        return NEW_MLX
    return OLD_MLX if release >= (0, 31) else OLDEST_MLX


def _dated(date: str) -> str | None:
    """The family of a date or period; None where it holds the day of the change."""
    found = _DATE.match(date)
    if found is None:
        return None
    year, month, day, last_month, open_end = found.groups()
    first = f"{year}-{month or '01'}-{day or '01'}"
    last = f"{year}-{last_month or month or '12'}-{day or '31'}"
    if first >= WIDE_KERNEL_SINCE:
        return NEW_MLX
    if open_end or last >= WIDE_KERNEL_SINCE:
        return None
    if first >= SPLIT_K_UNTIL:
        return OLD_MLX
    return OLDEST_MLX if last < SPLIT_K_UNTIL else None
