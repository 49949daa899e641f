"""Which passes of LLaDA 2's loop meet attention that nothing in this process had met before.

MLX's CUDA back end has cuDNN plan attention for each shape and layout of queries and keys, tens of
milliseconds each (:mod:`calibrate.known_plans`). A pass that denoises joins the keys of the cache
and its own in a new array; one that writes its block finds them in the cache, whose room is that of
the whole answer. So a block has two plans, and a later answer finds the first of them again where
it denoises as many rows behind as many tokens.
"""

# mlx-vlm has no hints, and MLX's own are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import mlx.core as mx

from calibrate.environment import read_environment
from calibrate.known_plans import Plans
from calibrate.planned_attention import plans_attention, plans_kept

PLANNED_TYPES = (mx.bfloat16, mx.float16)
IsNew: TypeAlias = Callable[[Any, int], bool]
"""Whether a pass of so many rows meets a new shape, given a layer's cache before it."""
Layout: TypeAlias = tuple[int, int, int]
"""Rows of queries, keys, and the keys that there is room for; 0 of these where none are kept."""


def new_shapes(language_model: Any) -> IsNew | None:
    """What tells new shapes from known ones; None where none is planned, as for 32-bit floats."""
    dtype, plans = language_model.model.norm.weight.dtype, of_process()
    if plans is None or dtype not in PLANNED_TYPES:
        return None
    config = language_model.config
    heads = config.num_attention_heads, config.num_key_value_heads, config.head_dim

    def is_new(before: Any, rows: int) -> bool:
        return not plans.knew((str(dtype), heads, layout(before, rows)))

    return is_new


@cache
def of_process() -> Plans | None:
    """What this process has had planned for loops of LLaDA 2; None where it plans no attention."""
    environment = read_environment()
    return Plans(plans_kept(environment)) if plans_attention(environment) else None


def layout(before: Any, rows: int) -> Layout:
    """How the queries and keys of a pass lie in memory, given a layer's cache before it."""
    keys = int(before.offset) + rows
    if not before.read_only:
        return rows, keys, int(before.max_size)
    return rows, keys, keys if before.offset else 0
