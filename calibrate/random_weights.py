"""Random weights in the form in which they are stored, sane enough to run through any depth."""

# MLX's stub leaves the arguments of `eval` untyped.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx
import mlx.nn as nn

EMBEDDED = 4.0
"""Standard deviation of the numbers of an embedded token, where the head is a matrix of its own.

A sublayer of random weights adds numbers of 0.2 to 0.6, and those of attention are much the same in
all rows, being a mean over the text. Beside embeddings that are drawn like matrices these soon are
all there is: every row chooses the same experts, and a text repeats one token. A head that is the
embedding would answer such a token with itself, so there it is drawn as all matrices are."""
TABLES = (nn.Embedding, nn.QuantizedEmbedding)


def draw_weights(module: Any, seed: int) -> None:
    """Replace every matrix of an mlx-lm module by a random one, and compute it.

    Entries have variance near 1 / inputs, so that activations stay finite through any number of
    layers; those of embeddings are larger (`EMBEDDED`), so that rows stay different. Norms, biases
    and state constants keep what their class starts with. One matrix is drawn at a time, and the
    lazy one that it replaces is never computed: nothing is held twice.
    Equal seeds draw equal weights.
    """
    named = sorted(module.named_modules(), key=lambda pair: pair[0])
    parts = [part for _, part in named if "weight" in part and part.weight.ndim > 1]
    embedded = TABLES if _has_own_head(parts) else ()
    key = mx.random.key(seed)
    for part in parts:
        key, own_key = mx.random.split(key)
        limit = math.sqrt(3) * (EMBEDDED if isinstance(part, embedded) else _deviation(part))
        if "scales" in part:
            _draw_codes(part, limit, own_key)
        else:
            _draw_floats(part, limit, own_key)


def _has_own_head(parts: list[Any]) -> bool:
    """Whether some other matrix has a row for each token, as the embedding does."""
    vocabulary = max((len(part.weight) for part in parts if isinstance(part, TABLES)), default=0)
    return any(len(part.weight) == vocabulary for part in parts if not isinstance(part, TABLES))


def _deviation(part: Any) -> float:
    """So that a row of inputs of order one gives outputs of order one."""
    is_packed = "scales" in part
    inputs = part.scales.shape[-1] * part.group_size if is_packed else part.weight.shape[-1]
    return 1.0 / math.sqrt(inputs)


def _draw_floats(part: Any, limit: float, key: mx.array) -> None:
    shape, dtype = part.weight.shape, part.weight.dtype
    part.weight = mx.random.uniform(-limit, limit, shape, dtype=dtype, key=key)
    mx.eval(part.weight)


def _draw_codes(part: Any, limit: float, key: mx.array) -> None:
    """Random codes under one scale: the kernels that read them cannot tell the difference.

    An affine weight is scale * code + bias, and symmetric about 0 to the last bit: a mean however
    small would add up over thousands of inputs. So the scale is a power of 2, and bias / scale
    has at most the 8 bits that bfloat16 holds.
    """
    *rows, words = part.weight.shape
    shape = part.scales.shape
    # 16 bits at a time: MLX makes wider integers from a float, and their low bits are 0.
    codes = mx.random.randint(0, 2**16, (*rows, 2 * words), dtype=mx.uint16, key=key)
    codes = codes.view(mx.uint32)
    if part.mode == "affine":
        steps = 2**part.bits - 1
        scale = 2.0 ** round(math.log2(2 * limit / steps))
        part.scales = mx.full(shape, scale, dtype=part.scales.dtype)
        part.biases = mx.full(shape, -scale * steps / 2, dtype=part.biases.dtype)
    else:
        sample = mx.random.uniform(-limit, limit, (1, 256), key=key)
        scales = mx.quantize(sample, part.group_size, part.bits, mode=part.mode)[1]
        part.scales = mx.full(shape, scales[0, 0], dtype=part.scales.dtype)
        # In mxfp8 seven ones are not a number; with the lowest bit 0 there are at most six.
        codes = codes & 0xFEFEFEFE if part.mode == "mxfp8" else codes
    part.weight = codes
    mx.eval(part.parameters())
