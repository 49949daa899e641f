"""How llama.cpp stores weights: bits per weight by type, as formats the cost model can price.

A type packs blocks of 32 or 256 weights (`ggml-common.h` of llama.cpp): q4_0 is 18 bytes for 32,
q8_0 34 for 32, q4_K 144 for 256, q6_K 210 for 256, iq2_xxs 66 for 256. A file of a `_M` kind mixes
types: half of the value and down projections have more bits. The means below leave head and
embedding out and were derived from the bits per weight of whole Llama-3.1-8B files
(`tools/quantize/README.md`: Q4_K_M 4.8944, Q5_K_M 5.7036, Q3_K_M 3.9960, Q2_K 3.1593, IQ2_XXS
2.3824), whose head has 6.5625 bits and whose embedding the type's own. They hold for layers in the
proportions of Llama's, and not for files whose maker chose types by hand (`UD-...`), which only
their stated size can tell.
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


@cache
def stored_format(name: str) -> WeightFormat:
    """A format by its name in the evidence: MLX's own, or `gguf-` and a type of llama.cpp.

    >>> stored_format("gguf-q4_0").bits_per_weight, stored_format("gguf-q6_k").bits_per_weight
    (4.5, 6.5625)
    """
    if not name.startswith(PREFIX):
        return weight_format(name)
    return packed(name, BITS_PER_WEIGHT[name.removeprefix(PREFIX)])


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
