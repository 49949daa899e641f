"""Rules on units: a value a thousand times off, a percentage for a probability."""

from __future__ import annotations

from calibrate.audit.acceptance import DRAFTING, stated_acceptance
from calibrate.published.run_row import PublishedRun
from model.units import GB, GIB

BANDWIDTHS = (10 * GB, 20_000 * GB)
"""From a slow laptop's memory to a server GPU's with room above, in bytes/s."""
MEMORIES = (1 * GIB, 4_096 * GIB)
BITS_PER_WEIGHT = (0.5, 34.0)
"""From below the smallest format in use (1.5) to 32-bit floats; a file may hold a little more."""


def percentage_for_probability(run: PublishedRun) -> str | None:
    """Acceptance <= 1 in all its meanings but tokens per round, which has a column of its own."""
    above = [number for number in stated_acceptance(run) if number > 1.0]
    if run.strategy not in DRAFTING or not above:
        return None
    return f"acceptance {above[0]:.4g} is no probability: a percentage, or tokens per round"


def active_above_all(run: PublishedRun) -> str | None:
    """Active parameters are some of the parameters."""
    total, active = run.target_params, run.target_active_params
    if total is None or active is None or active <= total * 1.01:
        return None
    return f"{active / 1e9:.4g} B active parameters of {total / 1e9:.4g} B"


def bandwidth_slip(run: PublishedRun) -> str | None:
    """No memory system of the field is slower than 10 GB/s or faster than 20 TB/s."""
    found = run.nominal_bandwidth_bytes_per_s
    if found is None or BANDWIDTHS[0] <= found <= BANDWIDTHS[1]:
        return None
    return f"bandwidth {found / GB:.4g} GB/s: a slip of the unit"


def memory_slip(run: PublishedRun) -> str | None:
    """No machine of the field has less than 1 GiB or more than 4 TiB."""
    found = run.memory_bytes
    if found is None or MEMORIES[0] <= found <= MEMORIES[1]:
        return None
    return f"memory {found / GIB:.4g} GiB: a slip of the unit"


def size_slip(run: PublishedRun) -> str | None:
    """Bytes over parameters are bits per weight: between 0.5 and 34.

    A mixture's row may give the bytes that a token reads, so either count of parameters will do.
    """
    counts = [count for count in (run.target_params, run.target_active_params) if count]
    if not run.model_bytes or not counts:
        return None
    bits = [8.0 * run.model_bytes / count for count in counts]
    if any(BITS_PER_WEIGHT[0] <= each <= BITS_PER_WEIGHT[1] for each in bits):
        return None
    return (
        f"{run.model_bytes / GB:.4g} GB for {counts[0] / 1e9:.4g} B parameters is "
        f"{bits[0]:.3g} bits per weight: a slip of the unit"
    )
