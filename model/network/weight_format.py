"""How MLX stores a weight matrix, and therefore how many bytes one read of it moves.

A matrix of N columns (outputs) and K depth (inputs) is stored row by row along K. A quantized row
is cut into groups of g weights; b bits per weight are packed into 32-bit words and every group
adds one scale and, in the affine family, one bias:

    bytes(N, K) = N * (K * b / 8 + K / g * (scale bits + bias bits) / 8)

so 4 bits in groups of 64 cost 4 + 32 / 64 = 4.5 bits per weight. Source: `mlx.core.quantize` of
MLX 0.32.4, whose array shapes the evidence tests reproduce to the byte. It does not hold for files
that MLX unpacks when it loads them (most GGUF types become fp16).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias, final

from model.errors import InputError

KernelFamily: TypeAlias = Literal["affine", "fp", "float"]

AFFINE_BITS = (1, 2, 3, 4, 5, 6, 8)
AFFINE_GROUPS = (32, 64, 128)
DEFAULT_GROUP = 64
FORMAT_NAMES = (
    *("fp32", "fp16", "bf16"),
    *(f"{bits}bit" for bits in AFFINE_BITS),
    *("mxfp4", "nvfp4", "mxfp8"),
    *("q4_0", "q4_1", "q8_0"),
)
"""The plain names; an affine name also takes -g32 or -g128, and -s32 for 32-bit scales."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFormat:
    """One way to store a weight matrix.

    `family` names the kernels that read it: affine (integers with a scale and a bias per group),
    fp (4- or 8-bit floats with an 8-bit scale per group) or float (whole numbers of 16 or 32 bits,
    ungrouped: group_size is 0).
    """

    name: str
    bits: int
    group_size: int
    scale_bits: int
    bias_bits: int
    family: KernelFamily

    @property
    def bits_per_weight(self) -> float:
        """Bits that one weight takes, its share of scale and bias included.

        >>> weight_format("4bit").bits_per_weight
        4.5
        """
        if not self.group_size:
            return float(self.bits)
        return self.bits + (self.scale_bits + self.bias_bits) / self.group_size

    def fits(self, depth: int) -> bool:
        """Whether a row of `depth` weights can be cut into whole groups."""
        return not self.group_size or depth % self.group_size == 0

    def matrix_bytes(self, columns: int, depth: int) -> int:
        """Bytes of a matrix of `columns` outputs and `depth` inputs, exactly as MLX stores it.

        Every group fills whole 32-bit words, so there is no padding to add.

        Raises:
            InputError: `depth` is not a multiple of the group size; MLX refuses this too.

        >>> weight_format("4bit").matrix_bytes(4096, 4096)  # 8 MiB packed + 1 MiB scales, biases
        9437184
        """
        if not self.fits(depth):
            raise InputError(
                f"{self.name} matrix of depth {depth}",
                f"does not split into groups of {self.group_size}",
                "keep this matrix in 16 bits, or take a smaller group",
            )
        groups = depth // self.group_size if self.group_size else 0
        return columns * (depth * self.bits + groups * (self.scale_bits + self.bias_bits)) // 8

    def with_scale_bits(self, scale_bits: Literal[16, 32]) -> WeightFormat:
        """The same format with scales and biases of another width.

        MLX keeps affine scales in the dtype that the weights had before they were quantized: 32
        bits after a cast to fp32, which is what makes its CPU back end usable. Formats of the
        other families store nothing of the weights' dtype and are returned unchanged.

        >>> weight_format("4bit").with_scale_bits(32).bits_per_weight
        5.0
        """
        if self.family != "affine":
            return self
        name = self.name.removesuffix("-s32") + ("-s32" if scale_bits == 32 else "")
        return replace(self, name=name, scale_bits=scale_bits, bias_bits=scale_bits)


def _affine(name: str, bits: int, group_size: int) -> WeightFormat:
    return WeightFormat(
        name=name, bits=bits, group_size=group_size, scale_bits=16, bias_bits=16, family="affine"
    )


def _fp(name: str, bits: int, group_size: int) -> WeightFormat:
    return WeightFormat(
        name=name, bits=bits, group_size=group_size, scale_bits=8, bias_bits=0, family="fp"
    )


def _float(name: str, bits: int) -> WeightFormat:
    return WeightFormat(
        name=name, bits=bits, group_size=0, scale_bits=0, bias_bits=0, family="float"
    )


_FIXED = {
    "fp32": _float("fp32", 32),
    "fp16": _float("fp16", 16),
    "bf16": _float("bf16", 16),
    "mxfp4": _fp("mxfp4", 4, 32),
    "nvfp4": _fp("nvfp4", 4, 16),
    "mxfp8": _fp("mxfp8", 8, 32),
    "q4_0": _affine("q4_0", 4, 32),
    "q4_1": _affine("q4_1", 4, 32),
    "q8_0": _affine("q8_0", 8, 32),
}
_AFFINE_NAME = re.compile(r"(?P<bits>[0-9])bit(-g(?P<group>[0-9]{2,3}))?")


@lru_cache(maxsize=256)
def weight_format(name: str) -> WeightFormat:
    """The format of that name; case does not matter.

    `4bit` has groups of 64; `4bit-g32` and `4bit-g128` say otherwise, and a last `-s32` stands
    for 32-bit scales. The GGUF names mean what `mx.load` keeps in memory, affine groups of 32 with
    a 16-bit scale and bias (5, 5 and 9 bits per weight), not what is on disk (q4_0 and q8_0 have
    no bias there: 4.5, 5 and 8.5).

    Raises:
        InputError: there is no such format.

    >>> weight_format("8bit-g32").bits_per_weight, weight_format("mxfp4").bits_per_weight
    (9.0, 4.25)
    """
    plain = name.strip().lower()
    stem = plain.removesuffix("-s32")
    match = _AFFINE_NAME.fullmatch(stem)
    found = _FIXED.get(stem)
    if match is not None:
        bits, group = int(match["bits"]), int(match["group"] or DEFAULT_GROUP)
        if bits in AFFINE_BITS and group in AFFINE_GROUPS:
            found = _affine(f"{bits}bit" + f"-g{group}" * (group != DEFAULT_GROUP), bits, group)
    if found is not None and stem != plain:
        found = found.with_scale_bits(32) if found.family == "affine" else None
    if found is None:
        raise InputError(
            f"format {name!r}",
            "is not a weight format",
            f"use one of {', '.join(FORMAT_NAMES)} (4bit-g32 and 4bit-g128 choose the group)",
        )
    return found
