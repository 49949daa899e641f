"""Single MLX kernels as dependent chains: what a matrix or a cache costs.

What is read must come from memory: chains walk round distinct copies that no cache can hold.

Values stay of order 1 however long the chain: the link between two matrices is an arc tangent,
and weights have a gain of 2, so that activations neither die out (denormals slow a CPU down)
nor overflow.
"""

# MLX's stubs leave some arguments untyped, those of `eval` among them.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import final

import mlx.core as mx

from calibrate.chain import Chain, Step
from calibrate.mlx_device import activation_of, activations, cold_copies, packing, usual_activation
from model.machine.kernels.attention import ALIGNED_KEYS
from model.network.weight_format import WeightFormat, weight_format

CACHE_STEP = 256
"""Slots by which mlx-lm's key-value cache grows."""
LINK_KERNELS, LINEAR_KERNELS, SUM_KERNELS, ATTENTION_KERNELS, UNFUSED_KERNELS = 2, 3, 3, 3, 10
"""Kernels that a unit may take; where attention with a mask is not one kernel, it is several."""
GAIN = 2.0


@final
class Matrices:
    """Distinct matrices of one format and shape, together too large for a cache."""

    def __init__(self, name: str, depth: int, columns: int) -> None:
        self._format = weight_format(name)
        self.activation = activation_of(self._format)
        base = matrix(self._format, depth, columns, self.activation)
        copies = cold_copies(self._format.matrix_bytes(columns, depth))
        # Rolled rows make each a different matrix, in a buffer of its own.
        self._copies: list[list[mx.array]] = [
            [mx.roll(part, turn, 0) for part in base] for turn in range(copies)
        ]
        mx.eval(self._copies)
        self.elements = sum(part.size for part in base)

    def product(self, x: mx.array, turn: int) -> mx.array:
        """Multiply x by the transpose of the matrix whose turn it is, as linear layers do."""
        weight, *scales = self._copies[turn % len(self._copies)]
        if not scales:
            return x @ weight.T
        return mx.quantized_matmul(x, weight, *scales, transpose=True, **packing(self._format))


def matrix(form: WeightFormat, depth: int, columns: int, dtype: mx.Dtype) -> list[mx.array]:
    """A random matrix in a format: its weights and, if quantized, their scales and biases.

    Rows are quantized each on its own, so a block of them is made and repeated.
    """
    block_rows = min(columns, max(8, 2**20 // depth))
    spread = GAIN / math.sqrt(depth)
    block = (spread * mx.random.normal((block_rows, depth))).astype(dtype)
    parts: list[mx.array] = [block]
    if form.family != "float":
        parts = list(mx.quantize(block, **packing(form)))
    repeats = math.ceil(columns / block_rows)
    return [mx.tile(part, (repeats, 1))[:columns] for part in parts]


def link(depth: int, columns: int, activation: mx.Dtype) -> Callable[[mx.array], mx.array]:
    """Make the output of a matrix (`columns` wide) the input of the next (`depth` wide).

    One kernel: the arc tangent of the first g columns, repeated depth / g times, where g is the
    largest divisor of the depth that the columns can fill.
    """
    width = max(g for g in range(1, min(depth, columns) + 1) if depth % g == 0)
    # One entry per repeat: a single broadcast scalar would leave the copying to a second kernel.
    ones = mx.ones((depth // width, 1), dtype=activation)

    def linked(y: mx.array) -> mx.array:
        narrow = mx.expand_dims(y[..., :width], -2)
        return mx.arctan2(narrow, ones).reshape(*y.shape[:-1], depth)

    return linked


def linear_chain(matrices: Matrices, *, depth: int, columns: int, rows: int) -> Chain:
    """`rows` activations through one matrix after another, a link between each two."""
    linked = link(depth, columns, matrices.activation)
    start = activations(rows, depth, matrices.activation)
    return Chain(
        start,
        lambda x, turn: linked(matrices.product(x, turn)),
        kernels=LINEAR_KERNELS,
        elements=matrices.elements,
    )


def link_chain(*, depth: int, columns: int, rows: int) -> Chain:
    """The links of a linear chain with the matrices left out."""
    dtype = usual_activation()
    linked = link(depth, columns, dtype)
    return Chain(activations(rows, depth, dtype), lambda x, _: linked(x), kernels=LINK_KERNELS)


def op_chain() -> Chain:
    """The smallest kernel there is, again and again: the floor of a dependent kernel."""
    return Chain(activations(1, 64, usual_activation()), lambda x, _: mx.negative(x))


def copy_chain(*, operation: str, size_bytes: int) -> Chain:
    """Read and write a large array (`copy`), or read it (`sum`), from memory every time."""
    dtype = usual_activation()
    arrays = [mx.ones((size_bytes // dtype.size,), dtype=dtype) for _ in range(2)]
    mx.eval(arrays)
    if operation == "copy":
        return Chain(arrays[0], lambda x, _: mx.negative(x), elements=arrays[0].size)
    # Adding the last sum to the next one's result is what makes the chain dependent.
    return Chain(
        mx.zeros((), dtype=dtype),
        lambda x, turn: x + mx.sum(arrays[turn % 2]),
        kernels=SUM_KERNELS,
        elements=arrays[0].size,
    )


@final
class Caches:
    """Keys and values of distinct layers: the first `context` slots of caches as mlx-lm's are.

    Those of several `sequences` are attended to with a mask in an array, as mlx-lm's batches are,
    for each sequence may be padded otherwise.
    """

    def __init__(self, *, kv_heads: int, head_dim: int, context: int, sequences: int = 1) -> None:
        self.activation = usual_activation()
        self.sequences = sequences
        self._context = context
        slots = (self.turned(ALIGNED_KEYS)[-1] // CACHE_STEP + 1) * CACHE_STEP
        shape = (sequences, kv_heads, slots, head_dim)
        base = mx.random.normal(shape).astype(self.activation)
        read_bytes = 2 * sequences * kv_heads * context * head_dim * self.activation.size
        turns = range(cold_copies(read_bytes))
        self.buffers = [(mx.roll(base, 2 * i, 2), mx.roll(base, 2 * i + 1, 2)) for i in turns]
        mx.eval(self.buffers)
        self.elements = read_bytes // self.activation.size

    def attention(self, contexts: Sequence[int]) -> Step:
        """Attention of the queries over the cache whose turn it is, masked as mlx-lm does.

        Each turn is of the next of `contexts`.
        """
        turns = range(math.lcm(len(self.buffers), len(contexts)))
        slices = [
            [
                b[..., : contexts[turn % len(contexts)], :]
                for b in self.buffers[turn % len(self.buffers)]
            ]
            for turn in turns
        ]
        paddings = [mx.ones((self.sequences, 1, 1, each), dtype=mx.bool_) for each in contexts]
        mx.eval(slices, paddings)

        def attend(queries: mx.array, turn: int) -> mx.array:
            keys, values = slices[turn % len(slices)]
            mask = None if queries.shape[2] == 1 else "causal"
            scale = 1 / math.sqrt(queries.shape[-1])
            padding = paddings[turn % len(paddings)]
            return mx.fast.scaled_dot_product_attention(
                queries, keys, values, scale=scale, mask=padding if self.sequences > 1 else mask
            )

        return attend

    def turned(self, number: int) -> range:
        """So many contexts about that of these caches."""
        return range(self._context - number // 2, self._context - number // 2 + number)


def attention_chain(
    caches: Caches, *, query_heads: int, head_dim: int, rows: int, contexts: int = 0
) -> Chain:
    """Attention whose output is the next query; both have the same shape, so no link.

    Where no one kernel attends, its products are as fast as the scores of a context are aligned
    in memory, so that a growing cache meets fast and slow ones: give the number of `contexts` to
    go round, or 1 to stay at the one of the caches.
    """
    shape = (caches.sequences, query_heads, rows, head_dim)
    return Chain(
        mx.random.normal(shape).astype(caches.activation),
        caches.attention(caches.turned(contexts or 1)),
        kernels=UNFUSED_KERNELS if contexts else ATTENTION_KERNELS,
        elements=caches.elements,
    )
