"""Rules on the bandwidth roof: a pass takes at least its weight bytes over the bandwidth.

    rate <= E B bandwidth / bytes

with E tokens per pass (k + 1 where only k is stated) and B sequences. The bytes are those of one
row, so for a mixture, whose rows read different experts, the true roof is lower still. Source:
Williams et al. 2009, with intensity below the ridge at small batch. It does not hold for weights
that stay in a cache (a model of some tens of MB), and prefill is not judged.
"""

from __future__ import annotations

from calibrate.audit.ceilings import measured_bandwidth
from calibrate.audit.rounding import COUNTING, least, most
from calibrate.audit.weights import least_bytes_per_pass, most_bytes_per_pass
from calibrate.published.run_row import PublishedRun
from model.errors import InputError
from model.machine.working_set import recommended_bytes
from model.units import GB

SLOWEST_SHARE = 0.5
"""Half of what weights and overhead allow; 7B models on base chips reach 0.77 to 0.9 of nominal."""
SLOWEST_SHARE_WIDE = 0.3
"""Wide chips are held up by unpacking 4-bit weights, and reach 0.38 (Ultra) to 0.8."""
WIDE = 160 * GB
OVERHEAD_S = 8e-3
"""Fixed time of a pass, on the high side: 0.1 ms a layer (M3 Ultra, MLX), 80 layers."""
SHORT_CONTEXT = 4096
PRESSING_SHARE = 0.4
"""Weights above this share of the working set leave little for cache, buffers and other apps."""


def rates_and_progress(run: PublishedRun) -> list[tuple[str, float, float]]:
    """The rates that have a roof: name, tok/s, and tokens that a pass yields at most.

    A rate of drafting with neither E nor k has none; a baseline is plain and decodes one sequence
    per pass, unless the row is of a batch, whose baseline may be one too.
    """
    rates: list[tuple[str, float, float]] = []
    if run.strategy in ("plain", "batch"):
        progress: float | None = 1.0
    elif run.tokens_per_pass is not None:
        progress = most(run.tokens_per_pass)
    else:
        progress = None if run.draft_length is None else run.draft_length + 1.0
    if run.decode_tokens_per_s is not None and progress is not None:
        rates.append(("rate", run.decode_tokens_per_s, progress * run.batch))
    if run.baseline_tokens_per_s is not None:
        rates.append(("baseline", run.baseline_tokens_per_s, float(run.batch)))
    return rates


def read_rate(run: PublishedRun) -> tuple[str, float, float] | None:
    """The fastest reading that the row claims: of which rate, its tok/s, and bytes/s."""
    least_bytes = least_bytes_per_pass(run)
    if least_bytes is None:
        return None
    claims = [
        (least(rate) / progress * least_bytes, name, rate)
        for name, rate, progress in rates_and_progress(run)
        if progress > 0.0
    ]
    if not claims:
        return None
    bytes_per_s, name, rate = max(claims)
    return name, rate, bytes_per_s


def above_nominal_bandwidth(run: PublishedRun) -> str | None:
    """A rate that reads weights faster than the nominal bandwidth is impossible."""
    nominal, claim = run.nominal_bandwidth_bytes_per_s, read_rate(run)
    if nominal is None or claim is None or claim[2] <= nominal * (1.0 + COUNTING):
        return None
    name, rate, bytes_per_s = claim
    return (
        f"{name} {rate:.4g} tok/s reads at least {bytes_per_s / GB:.4g} GB/s of weights; "
        f"{run.chip} has {nominal / GB:.4g}: hidden drafting, or other weights than stated"
    )


def above_measured_bandwidth(run: PublishedRun) -> str | None:
    """A rate that reads faster than anyone measured on the chip, yet below nominal."""
    nominal, claim = run.nominal_bandwidth_bytes_per_s, read_rate(run)
    if nominal is None or claim is None:
        return None
    best = measured_bandwidth(run.chip, nominal)
    if best is None or not best.measured_bytes_per_s * 1.03 < claim[2]:
        return None
    if claim[2] > nominal * (1.0 + COUNTING):
        return None
    name, rate, bytes_per_s = claim
    return (
        f"{name} {rate:.4g} tok/s reads at least {bytes_per_s / GB:.4g} GB/s of weights; the best "
        f"measured on {run.chip} is {best.measured_bytes_per_s / GB:.4g} ({best.source})"
    )


def far_below_roof(run: PublishedRun) -> str | None:
    """Plain decoding at less than half of 1 / (all weight bytes / bandwidth + 8 ms).

    Less than 0.3 of it on chips above 160 GB/s. Shares: llama.cpp discussion 4167 and MLX rows.
    All bytes of the file are counted, so a mixture is judged too kindly and not too harshly.
    Contexts above 4096 are not judged: reading the cache takes its own time. So are rows that
    stream weights from a disk on purpose.
    """
    nominal, rate = run.nominal_bandwidth_bytes_per_s, run.decode_tokens_per_s
    weights = most_bytes_per_pass(run)
    if run.strategy != "plain" or run.batch > 1 or (run.context_tokens or 0.0) > SHORT_CONTEXT:
        return None
    if nominal is None or not nominal or rate is None or weights is None:
        return None
    if "stream" in f"{run.quant} {run.notes}".lower():
        return None
    expected = 1.0 / (weights / nominal + OVERHEAD_S)
    if most(rate) >= expected * (SLOWEST_SHARE_WIDE if nominal > WIDE else SLOWEST_SHARE):
        return None
    return (
        f"{rate:.3g} tok/s, where {weights / GB:.3g} GB of weights at {nominal / GB:.4g} GB/s and "
        f"{1e3 * OVERHEAD_S:.0f} ms allow {expected:.3g}: {why_slow(run, weights)}"
    )


def why_slow(run: PublishedRun, weights: float) -> str:
    """Swap where the weights press on the working set, else what else slows a machine."""
    if run.memory_bytes is not None and run.chip.startswith("M"):
        try:
            limit = recommended_bytes(int(run.memory_bytes))
        except InputError:
            limit = run.memory_bytes
        if weights > PRESSING_SHARE * limit:
            return (
                f"the GPU may keep {limit / GB:.3g} GB resident, "
                f"of which the weights take {weights / GB:.3g}; swap is likely"
            )
    return "swap, heat, a slow path, or another load"
