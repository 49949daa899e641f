"""MLX on this device: the types of activations, how weights are packed, and its memory."""

# MLX's stubs leave some arguments untyped, those of `eval` among them.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx

from calibrate.cold import cold
from model.network.weight_format import WeightFormat

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


def activation_of(form: WeightFormat) -> mx.Dtype:
    """The dtype that activations have beside weights of this format."""
    if form.family == "float":
        return FLOATS[form.name]
    return mx.float32 if form.scale_bits == 32 else usual_activation()


def packing(form: WeightFormat) -> dict[str, Any]:
    """The arguments by which MLX names a quantized format."""
    mode = "affine" if form.family == "affine" else form.name
    return {"group_size": form.group_size, "bits": form.bits, "mode": mode}


def activations(rows: int, width: int, dtype: mx.Dtype) -> mx.array:
    """Random activations as decoder layers pass them on: one sequence of `rows` tokens."""
    return mx.random.normal((1, rows, width)).astype(dtype)
