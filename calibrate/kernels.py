"""Single MLX kernels as dependent chains: what a matrix or a cache costs.

Decoding is a dependent chain, and independent operations overlap on MLX's devices, so every
output here feeds the next input. What is read must come from memory: chains walk round distinct
copies that no cache can hold. The graph is built outside the clock, because real decoding builds
the next pass while this one runs, and so it is submitted, where the device can be kept busy
meanwhile; elsewhere it is submitted in a few pieces, so that the runtime's own walk over a long
graph hides behind the device.

Values stay of order 1 however long the chain: the link between two matrices is an arc tangent,
and weights have a gain of 2, so that activations neither die out (denormals slow a CPU down)
nor overflow.
"""

# MLX's stubs leave some arguments untyped, those of `eval` among them.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias, final

import mlx.core as mx

from calibrate.cold import cold
from calibrate.head_start import ELEMENTS_AHEAD, KERNELS_AHEAD, HeadStart
from calibrate.timing import LONGEST_CHAIN, Job
from model.network.weight_format import WeightFormat, weight_format

Step: TypeAlias = Callable[[mx.array, int], mx.array]

CACHE_STEP = 256
"""Slots by which mlx-lm's key-value cache grows."""
PIECES = 8
"""Submissions per chain."""
SHARE_AHEAD = 0.25
"""Of the usual time of a repetition, where a chain is submitted ahead."""
LINK_KERNELS, LINEAR_KERNELS, SUM_KERNELS, ATTENTION_KERNELS, MASKED_KERNELS = 2, 3, 3, 3, 10
"""Kernels that a unit may take; where attention with a mask is not one kernel, it is several."""
GAIN = 2.0


FLOATS = {"fp32": mx.float32, "fp16": mx.float16, "bf16": mx.bfloat16}


def on_processor() -> bool:
    """Whether MLX's CPU back end is in use."""
    return mx.default_device().type == mx.DeviceType.cpu


def usual_activation() -> mx.Dtype:
    """The dtype of activations beside quantized weights on this device.

    bfloat16; on the CPU back end float32, with which its kernels are 8 to 36 times faster.
    """
    return mx.float32 if on_processor() else mx.bfloat16


def cold_copies(size_bytes: int) -> int:
    """How many copies of something of this size a chain has to walk round."""
    return cold("cpu" if on_processor() else "accelerator").copies(size_bytes)


@contextmanager
def resident() -> Generator[None, None, None]:
    """Keep MLX's memory wired while measuring on Metal, as mlx-lm does while it generates."""
    if not mx.metal.is_available():
        yield
        return
    limit = int(mx.device_info()["max_recommended_working_set_size"])
    before = mx.set_wired_limit(limit)
    try:
        yield
    finally:
        mx.synchronize()
        mx.set_wired_limit(before)


def release() -> None:
    """Give memory that nothing uses any more back to the system."""
    mx.synchronize()
    mx.clear_cache()


@final
class Chain:
    """Units of work of which each takes the last one's output: `step(value, turn) -> value`.

    Turns go on from chain to chain, so that a short chain does not meet the same copy again. A
    unit is of `kernels` kernels at most, which read `elements` numbers: so many units can be
    submitted ahead of the device (:mod:`calibrate.head_start`).
    """

    def __init__(self, start: mx.array, step: Step, *, kernels: int = 1, elements: int = 0) -> None:
        self.start = start
        self.step = step
        self._ahead = head_start()
        self._longest_ahead = max(
            1, min(KERNELS_AHEAD // kernels, ELEMENTS_AHEAD // max(elements, 1))
        )
        self._turns = itertools.count()
        mx.eval(start)

    @property
    def longest(self) -> int:
        """Units that one chain may have."""
        return LONGEST_CHAIN if self._ahead is None else self._longest_ahead

    @property
    def patience(self) -> float:
        """What a repetition needs of the usual time: of a chain that waits for nothing, less."""
        return 1.0 if self._ahead is None else SHARE_AHEAD

    def prepare(self, units: int) -> Job:
        """Submit `units` steps ahead of the device if that can be; the job does what is left."""
        if self._ahead is not None:
            submitted = self._ahead.submitted(lambda: self._built(units))
            if submitted is not None:
                return lambda: mx.eval(submitted[-1])
            self._ahead = None
        pieces = self._built(units)

        def job() -> None:
            for piece in pieces:
                mx.async_eval(piece)
            mx.eval(pieces[-1])

        return job

    def _built(self, units: int) -> list[mx.array]:
        """The graph of `units` steps, in a few pieces."""
        stride = math.ceil(units / PIECES)
        pieces: list[mx.array] = []
        value = self.start
        for done in range(1, units + 1):
            value = self.step(value, next(self._turns))
            if done % stride == 0 or done == units:
                pieces.append(value)
        mx.synchronize()
        return pieces


@cache
def head_start() -> HeadStart | None:
    """The head start of this process's device; a processor is its own host and has none."""
    return None if on_processor() else HeadStart()


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


def activation_of(form: WeightFormat) -> mx.Dtype:
    """The dtype that activations have beside weights of this format."""
    if form.family == "float":
        return FLOATS[form.name]
    return mx.float32 if form.scale_bits == 32 else usual_activation()


def packing(form: WeightFormat) -> dict[str, Any]:
    """The arguments by which MLX names a quantized format."""
    mode = "affine" if form.family == "affine" else form.name
    return {"group_size": form.group_size, "bits": form.bits, "mode": mode}


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


def activations(rows: int, width: int, dtype: mx.Dtype) -> mx.array:
    """Random activations as decoder layers pass them on: one sequence of `rows` tokens."""
    return mx.random.normal((1, rows, width)).astype(dtype)


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
        slots = (context // CACHE_STEP + 1) * CACHE_STEP
        shape = (sequences, kv_heads, slots, head_dim)
        base = mx.random.normal(shape).astype(self.activation)
        read_bytes = 2 * sequences * kv_heads * context * head_dim * self.activation.size
        turns = range(cold_copies(read_bytes))
        buffers = [(mx.roll(base, 2 * turn, 2), mx.roll(base, 2 * turn + 1, 2)) for turn in turns]
        mx.eval(buffers)
        self.slices = [tuple(b[..., :context, :] for b in pair) for pair in buffers]
        self._padding = mx.ones((sequences, 1, 1, context), dtype=mx.bool_)
        mx.eval(self.slices, self._padding)
        self.elements = read_bytes // self.activation.size

    def attend(self, queries: mx.array, turn: int) -> mx.array:
        """Attention of the queries over the cache whose turn it is, masked as mlx-lm does."""
        keys, values = self.slices[turn % len(self.slices)]
        mask = None if queries.shape[2] == 1 else "causal"
        scale = 1 / math.sqrt(queries.shape[-1])
        return mx.fast.scaled_dot_product_attention(
            queries, keys, values, scale=scale, mask=self._padding if self.sequences > 1 else mask
        )


def attention_chain(caches: Caches, *, query_heads: int, head_dim: int, rows: int) -> Chain:
    """Attention whose output is the next query; both have the same shape, so no link."""
    shape = (caches.sequences, query_heads, rows, head_dim)
    return Chain(
        mx.random.normal(shape).astype(caches.activation),
        caches.attend,
        kernels=ATTENTION_KERNELS if caches.sequences == 1 else MASKED_KERNELS,
        elements=caches.elements,
    )
