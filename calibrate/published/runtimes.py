"""Which kernels ran a published run: the family of its runtime.

An MLX engine runs the kernels of the MLX it was built with. Where a run states that release, it
decides; else the date does: mlx 0.30.5, from which several rows of 16-bit weights fill tiles of 64
rows, came out on 2026-02-02, and mlx 0.32.0, which reads weights once for several rows, on
2026-07-07. An earlier run is of `mlx-0.29` or `mlx-0.31` and a later one is taken as `mlx-0.32`,
although an engine may lag behind. A period that holds such a day leaves open which, unless one row
alone is asked for, which all serve with the same kernel. Releases from 0.20 to 0.30.4 are priced as
0.29, and older ones, with tiles of 32 rows, as 0.17.

A run may say that it went without the wide kernel of mlx 0.32 (`qmv_wide`; mlxcel pins its
processes so to keep text byte-identical): its rows then go where mlx 0.31 sends them. An engine
with kernels of its own is refused where they ran. mlx-dspark's for few rows of quantized weights
serves 5 rows and more (its documentation, "Draft caps and calibration"); fewer rows, and weights of
16 bits, are MLX's.
"""

from __future__ import annotations

import re

from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun

SPLIT_K_UNTIL, WIDE_KERNEL_SINCE = "2026-02-02", "2026-07-07"
LARGER_TILES_SINCE = "2024-11-05"
FIRST_MLX, OLDEST_MLX, OLD_MLX, NEW_MLX = "mlx-0.17", "mlx-0.29", "mlx-0.31", "mlx-0.32"
MLX_FAMILIES = (FIRST_MLX, OLDEST_MLX, OLD_MLX, NEW_MLX)
MLX_ENGINES = (
    *("mlx", "redrafter-mlx", "rapid-mlx", "ax-engine", "dflash-mlx", "lm studio mlx-engine"),
    *("vllm-mlx", "mtplx", "lightning-mlx", "omlx", "unsloth mlx"),
)
"""How the names of engines begin that run MLX's kernels."""
OTHER_BACK_ENDS = ("cuda", "vulkan", "rocm", "other")
"""What a family ends in where it does not run on Metal."""
DS4 = "ds4"
"""An engine for DeepSeek V4 whose matrix kernels are llama.cpp's and whose attention is its own.

Its README says that it does not link ggml and kept certain kernels. Priced like llama.cpp, four
short runs on M3 Ultra and M5 Max come out 0.6 to 3.2 % fast, and longer ones 32 to 89 %: its
attention and its indexer take what no kernel of llama.cpp was fitted to.
"""
OWN_KERNELS = ("multi-row attention kernel", "rowexact")
FEW_ROWS, FEW_ROWS_FROM = "small-m verify kernel", 5
"""An engine's own kernel of quantized weights, and the rows that it serves from."""
UNQUANTIZED = ("bf16", "bfloat16", "fp16", "f16", "float16", "fp32", "f32", "float32")
WITHOUT_WIDE = ("narrow kernel", "narrow pin", "qmv_wide off", "qmv_wide=0", "without qmv_wide")
"""What notes and locators say of a run without the wide kernel."""

_LLAMA_CPP = re.compile(r"(?i)\bllama[ ._-]?cpp\b|\bllama-(?:server|bench|cli|batched-bench)\b")
_MLX = re.compile(r"(?i)\bmlx\b")
_ON_A_MAC = re.compile(r"\bM[1-9]\b|\bA\d{2} Pro\b")
_STATED_MLX = re.compile(r"(?<![\w-])mlx ~?(\d+)\.(\d+)(?:\.(\d+))?")
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?(?:/(\d{2}))?)?(\+| thread; rows added)?")


def runtime_family(run: PublishedRun) -> str | Refusal:
    """`mlx-0.17` to `mlx-0.32` or `llama.cpp`; on other back ends with their name behind it."""
    name = f"{run.runtime} {run.runtime_version}".lower()
    if is_llama_cpp(run.runtime):
        return f"llama.cpp{_back_end(run, name)}"
    if run.runtime.lower().startswith(DS4):
        text = f"{run.runtime} has its own kernels (attention)"
        return Refusal(reason=Reason.UNKNOWN_RUNTIME, text=text)
    if not (run.runtime.lower().startswith(MLX_ENGINES) or _MLX.search(run.runtime)):
        return Refusal(reason=Reason.UNKNOWN_RUNTIME, text=run.runtime or "not stated")
    several_rows = run.strategy != "plain" or run.batch > 1
    own = _own_kernel(run, name)
    if own and several_rows:
        return Refusal(reason=Reason.UNKNOWN_RUNTIME, text=f"has its own kernels ({own})")
    family = _stated(name) or dated_family(run.date)
    if family is None and several_rows:
        text = f"{run.runtime} of {run.date or 'no date'}, of several possible MLX"
        return Refusal(reason=Reason.UNKNOWN_RUNTIME, text=text)
    family = family or NEW_MLX
    said = f"{run.notes} {run.locator}".lower()
    if family == NEW_MLX and several_rows and any(word in said for word in WITHOUT_WIDE):
        family = OLD_MLX
    return family + _back_end(run, name)


def is_llama_cpp(runtime: str) -> bool:
    """Whether llama.cpp's kernels ran, whatever was around them.

    >>> is_llama_cpp("LM Studio (llama.cpp Metal 2.29)"), is_llama_cpp("mlx-lm")
    (True, False)
    """
    return _LLAMA_CPP.search(runtime) is not None


def _own_kernel(run: PublishedRun, name: str) -> str | None:
    """The kernel of an engine's own that served most of a run's rows; None where MLX's did."""
    found = next((kernel for kernel in OWN_KERNELS if kernel in name), None)
    if found is not None or FEW_ROWS not in name or run.quant.lower() in UNQUANTIZED:
        return found
    rows = run.batch * (1 if run.draft_length is None else run.draft_length + 1)
    known = run.strategy == "batch" or run.draft_length is not None
    return None if known and rows < FEW_ROWS_FROM else FEW_ROWS


def split_family(family: str) -> tuple[str, str]:
    """A family's runtime, and the back end that it runs on.

    >>> split_family("mlx-0.32"), split_family("llama.cpp-cuda")
    (('mlx-0.32', 'metal'), ('llama.cpp', 'cuda'))
    """
    runtime, _, back_end = family.rpartition("-")
    return (runtime, back_end) if back_end in OTHER_BACK_ENDS else (family, "metal")


def _back_end(run: PublishedRun, name: str) -> str:
    """Empty for Metal, else what is appended to a family."""
    for back_end in OTHER_BACK_ENDS[:-1]:
        if back_end in name:
            return f"-{back_end}"
    if "(cpu)" in name:
        return "-cpu"
    on_a_mac = _ON_A_MAC.search(run.chip) is not None
    return "" if on_a_mac or not run.chip or "metal" in name else "-other"


def _stated(name: str) -> str | None:
    found = _STATED_MLX.search(name)
    if found is None:
        return None
    release = int(found[1]), int(found[2]), int(found[3] or 0)
    if release >= (0, 32):
        return NEW_MLX
    if release >= (0, 30, 5):
        return OLD_MLX
    return OLDEST_MLX if release >= (0, 20) else FIRST_MLX


def period_of(date: str) -> tuple[str, str] | None:
    """The first and the last day of a date or period; None where it is not one.

    >>> period_of("2026-08"), period_of("2025-11-22 thread; rows added to 2026")
    (('2026-08-01', '2026-08-31'), ('2025-11-22', '9999-12-31'))
    """
    found = _DATE.match(date)
    if found is None:
        return None
    year, month, day, last_month, open_end = found.groups()
    last = f"{year}-{last_month or month or '12'}-{day or '31'}"
    return f"{year}-{month or '01'}-{day or '01'}", "9999-12-31" if open_end else last


def dated_family(date: str) -> str | None:
    """The family of a date or period; None where it holds the day of the change."""
    period = period_of(date)
    if period is None:
        return None
    first, last = period
    if first >= WIDE_KERNEL_SINCE:
        return NEW_MLX
    if last >= WIDE_KERNEL_SINCE:
        return None
    if first >= SPLIT_K_UNTIL:
        return OLD_MLX
    if last >= SPLIT_K_UNTIL:
        return None
    if first >= LARGER_TILES_SINCE:
        return OLDEST_MLX
    return FIRST_MLX if last < LARGER_TILES_SINCE else None
