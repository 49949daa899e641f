"""Bytes of weights that a row's pass reads: at least, and at most.

An impossible rate needs the least, a suspiciously low one the most. Both come from the shape of the
network and its format where the evidence tables know both, else from what the row itself states:
the size of its file, or its parameters and format.
"""

from __future__ import annotations

import re

from calibrate.published.names import target_of
from calibrate.published.refusal import Refusal
from calibrate.published.run_row import PublishedRun

READ_SHARE = 0.85
"""Share of the stated parameters that a token reads at least.

An embedding that is not the head's is a row gather: 13 % of DeepSeek-R1-Distill-Qwen-1.5B, 8 % of
Qwen3-8B, less of others.
"""
KNOWN_SHARE = 0.95
"""Share of the bytes by shape that are read at least; files differ in a few tensors' formats."""
SCALES_BITS = 1.0
"""What scales, biases and larger tensors add to a format's bits at most (Q4_K_M: 0.85)."""

_BITS = (
    re.compile(r"(?<![\d.])(\d(?:\.\d+)?)[ -]?(?:bpw|bit)"),
    re.compile(r"(?:iq|\bq|tq|mxfp|nvfp|int)(\d)"),
)
_FLOAT = re.compile(r"(?:b?f|fp)(16|32)(?:/fp16)?(?: \(unquantized\))?")


def nominal_bits(quant: str) -> float | None:
    """The least bits per weight that the name of a format stands for; None if it is not clear.

    >>> [nominal_bits(name) for name in ("MLX 4-bit", "Q4_K_M", "mixed 4-bit MoE / 8-bit", "bf16")]
    [4.0, 4.0, 4.0, 16.0]
    >>> nominal_bits("Q4-class unless card column says otherwise")
    >>> nominal_bits("Optimized-Speed fp16")  # of activations, and of no weights
    """
    words = quant.lower()
    if "unless" in words:
        return None
    found = [float(number) for pattern in _BITS for number in pattern.findall(words)]
    if re.search(r"\bmixed \d+/\d", words):
        found += [float(number) for number in re.findall(r"\d+(?=/)", words)]
    if found:
        return min(found)
    whole = _FLOAT.fullmatch(words)
    return None if whole is None else float(whole[1])


def least_bytes_per_pass(run: PublishedRun) -> float | None:
    """Weight bytes that a pass over one row reads at the very least.

    None for an unknown network without active parameters: a mixture reads a small part of its
    file, and a row that does not say whether it is one is not judged.
    """
    known = target_of(run)
    if isinstance(known, Refusal):
        return _least_stated_bytes(run)
    return KNOWN_SHARE * known.weight_bytes_per_token


def _least_stated_bytes(run: PublishedRun) -> float | None:
    """The same by what the row itself says."""
    active, total = run.target_active_params, run.target_params
    if active is None:
        return None
    if run.model_bytes is not None and total and 8.0 * run.model_bytes / total > 1.0:
        return READ_SHARE * run.model_bytes * min(1.0, active / total)
    bits = nominal_bits(run.quant)
    return None if bits is None else READ_SHARE * active * bits / 8.0


def most_bytes_per_pass(run: PublishedRun) -> float | None:
    """Weight bytes that a pass over one row reads at most: all of them."""
    if run.model_bytes is not None:
        return run.model_bytes
    known = target_of(run)
    if not isinstance(known, Refusal):
        return float(known.total_bytes)
    bits = nominal_bits(run.quant)
    if run.target_params is None or bits is None:
        return None
    return run.target_params * (bits + SCALES_BITS if bits < 16.0 else bits) / 8.0
