"""The machine and the software that a measurement was made with.

Speed depends on all of it: MLX changed its kernels between minor versions, and the `MLX_`
variables change how work is packed. So each run and each profile carries one of these records,
and numbers of different environments are not mixed.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

import mlx.core as mx

from model.typed_json import record_from_json


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What was measured on, and with.

    Attributes:
        device: The back end that MLX runs on: "metal", "cuda" or "cpu".
        chip: The name a person knows it by: "Apple M3", "NVIDIA H200".
        architecture: MLX's own name of it, on which its kernels depend: "applegpu_g15g".
        memory_bytes: The device's memory; the computer's, where they share it.
        recommended_working_set_bytes: Metal's limit, beyond which speed collapses; None elsewhere.
        mlx_variables: The `MLX_` environment variables that were set, sorted by name.
        gpu_cores: Cores of an Apple GPU, which MLX does not tell; None elsewhere.
        processors: Those of the host that the process may use; 0 in older records, which do not
            state it.
    """

    device: str
    chip: str
    architecture: str
    memory_bytes: int
    recommended_working_set_bytes: int | None
    os: str
    python: str
    mlx: str
    mlx_lm: str
    mlx_variables: tuple[tuple[str, str], ...]
    gpu_cores: int | None = None
    processors: int = 0

    @property
    def runtime(self) -> str:
        """The kernels' name and version, such as "mlx-0.32.4"."""
        return f"mlx-{self.mlx}"

    @property
    def memory_limit_bytes(self) -> int:
        """What weights, caches and buffers together may take before speed can no longer be told.

        Metal states it. Elsewhere a tenth of the memory is left to everything else.
        """
        return self.recommended_working_set_bytes or self.memory_bytes * 9 // 10

    def to_json(self) -> dict[str, Any]:
        """The record as `json.dumps` takes it."""
        return asdict(self)

    @staticmethod
    def from_json(value: object, where: str = "environment") -> Environment:
        """The record from parsed JSON; an InputError names the field that is wrong."""
        return record_from_json(Environment, value, where)


def read_environment() -> Environment:
    """The environment of this process, as MLX and the operating system tell it."""
    device = _device()
    info = dict(mx.device_info())
    memory = info.get("memory_size") or info.get("total_memory") or _host_memory_bytes()
    working_set = info.get("max_recommended_working_set_size")
    return Environment(
        device=device,
        chip=_processor(str(info["device_name"])) if device == "cpu" else str(info["device_name"]),
        architecture=str(info["architecture"]),
        memory_bytes=int(memory),
        recommended_working_set_bytes=None if working_set is None else int(working_set),
        os=_operating_system(),
        python=platform.python_version(),
        mlx=version("mlx"),
        mlx_lm=version("mlx-lm"),
        mlx_variables=tuple(sorted(i for i in os.environ.items() if i[0].startswith("MLX_"))),
        gpu_cores=_gpu_cores() if device == "metal" else None,
        processors=usable_processors(),
    )


def usable_processors() -> int:
    """Processors that this process may use; all of the computer where no system says which."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 0


def free_bytes() -> int:
    """What can still be allocated without leaving what speed can be told for.

    The limit less what MLX holds; less still where the device or the computer has not that much
    left, because of what other programs hold. Buffers that MLX keeps for itself are free.
    """
    left = [read_environment().memory_limit_bytes - mx.get_active_memory()]
    device_free = dict(mx.device_info()).get("free_memory")
    if device_free is not None:
        left.append(int(device_free) + mx.get_cache_memory())
    elif _device() == "cpu" and (available := _available_bytes()) is not None:
        left.append(available + mx.get_cache_memory())
    return max(0, min(left))


def _available_bytes() -> int | None:
    """The memory that Linux could give without swapping; None elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return next((int(kilobytes) * 1024 for kilobytes in found), None)


def _device() -> str:
    if mx.default_device().type == mx.DeviceType.cpu:
        return "cpu"
    return "metal" if mx.metal.is_available() else "cuda"


def _gpu_cores() -> int | None:
    """The cores that macOS counts in the GPU; None where it does not say."""
    command = ["/usr/sbin/ioreg", "-r", "-d", "1", "-c", "AGXAccelerator"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return core_count(listing.stdout)


def core_count(listing: str) -> int | None:
    """The `gpu-core-count` in what macOS lists of its accelerator.

    >>> core_count('    | "gpu-core-count" = 10')
    10
    """
    counted = re.search(r'"gpu-core-count" = (\d+)', listing)
    return None if counted is None else int(counted[1])


def _processor(fallback: str) -> str:
    """The processor's name; Linux keeps it in a file that other systems do not have."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return fallback
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or fallback


def _host_memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _operating_system() -> str:
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    # What a distribution appends to the version of its kernel names the build, not the system.
    return f"{platform.system()} {platform.release().partition('-')[0]}"
