"""How llama.cpp stores weights: bits per weight by type, as formats the cost model can price.

A type packs blocks of 32 or 256 weights (`ggml-common.h` of llama.cpp): q4_0 is 18 bytes for 32,
q8_0 34 for 32, q4_K 144 for 256, q6_K 210 for 256, iq2_xxs 66 for
256. A file of a `_M` kind mixes types: half of the
value and down projections have more bits. The means below leave head and embedding out and were
derived from the bits per weight of whole Llama-3.1-8B files (`tools/quantize/README.md`), whose
head has 6.5625 bits (5.5 in the kinds below Q2_K and in IQ3_XXS) and whose embedding the type's
own. They hold for layers in the proportions of Llama's, and not for files whose maker chose types
by hand (`UD-...`), which only their stated size can tell.
"""

from __future__ import annotations

from functools import cache

from model.network.weight_format import WeightFormat, weight_format

PREFIX = "gguf-"
GROUP = 32

BITS_PER_WEIGHT = {
    "q8_0": 8.5,
    "q6_k": 6.5625,
    "q5_k": 5.5,
    "q4_k": 4.5,
    "q4_0": 4.5,
    "q4_1": 5.0,
    "iq4_xs": 4.25,
    "q3_k": 3.4375,
    "q2_k": 2.625,
    "iq2_xxs": 2.0625,
    "q5_k_m": 5.65,
    "q4_k_m": 4.80,
    "q4_k_s": 4.54,
    "q3_k_m": 3.845,
    "q2_k_m": 2.94,
    "iq2_xxs_m": 2.13,
}
LAYERS, TABLE = 6_979e6, 525.3e6
"""Weights of Llama-3.1-8B: of its layers, and of its head or its embedding."""
WHOLE_FILES = {
    "iq2_xs_m": (2.5882, 2.625, 5.5),
    "iq2_s_m": (2.7403, 3.4375, 5.5),
    "iq2_m_m": (2.9294, 3.4375, 5.5),
    "q2_k_s_m": (2.9697, 2.625, 6.5625),
    "iq3_xxs_m": (3.2548, 3.4375, 5.5),
    "iq3_xs_m": (3.4977, 3.4375, 6.5625),
    "iq3_s_m": (3.6606, 3.4375, 6.5625),
    "iq3_m_m": (3.7628, 3.4375, 6.5625),
    "q3_k_s_m": (3.6429, 3.4375, 6.5625),
    "q3_k_l_m": (4.2979, 3.4375, 6.5625),
    "iq4_nl_m": (4.6818, 4.5, 6.5625),
    "q5_k_s_m": (5.5704, 5.5, 6.5625),
}
"""Bits per weight of whole Llama-3.1-8B files, and of their embedding and head."""


@cache
def stored_format(name: str) -> WeightFormat:
    """A format by its name in the evidence: MLX's own, or `gguf-` and a type of llama.cpp.

    >>> stored_format("gguf-q4_0").bits_per_weight, stored_format("gguf-q6_k").bits_per_weight
    (4.5, 6.5625)
    """
    if not name.startswith(PREFIX):
        return weight_format(name)
    return packed(name, bits_of(name.removeprefix(PREFIX)))


def bits_of(kind: str) -> float:
    """Bits per weight of the layers of a type, or of a kind of file that mixes types.

    Raises:
        KeyError: there is no such type or kind.

    >>> round(bits_of("q3_k_l_m"), 2)
    4.19
    """
    if kind in BITS_PER_WEIGHT:
        return BITS_PER_WEIGHT[kind]
    whole, embedding, head = WHOLE_FILES[kind]
    return (whole * (LAYERS + 2.0 * TABLE) - (embedding + head) * TABLE) / LAYERS


def packed(name: str, bits_per_weight: float) -> WeightFormat:
    """A format of so many bits per weight, to within 1/64: whole bits, and a share in scales.

    >>> packed("gguf-4.8", 4.8).bits_per_weight
    4.8125
    """
    bits = int(bits_per_weight)
    return WeightFormat(
        name=name,
        bits=bits,
        group_size=GROUP,
        scale_bits=round((bits_per_weight - bits) * GROUP),
        bias_bits=0,
        family="affine",
    )
