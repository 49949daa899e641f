"""How many different experts a pass of several rows reads, counted while a loop runs untimed.

What a mixture costs is decided by its weights: rows that choose alike read few experts, and no
law of the machine can tell. So the choices are counted as the acceptance is. Each part that is
given rows and the numbers of their experts is replaced by one that notes these numbers and passes
all on; the noting itself is cheap, but keeps arrays alive, and is never timed.
"""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any, TypeAlias, cast, final

import mlx.core as mx
import mlx.nn as nn

GATHERED = ("SwitchLinear", "QuantizedSwitchLinear")
"""Matrices of all experts, stacked; mlx-lm and mlx-vlm each have classes of these names."""
Place: TypeAlias = tuple[nn.Module, str, nn.Module]
"""A part, under which name another part holds it, and that other part first."""


def switches(model: nn.Module) -> list[Place]:
    """The parts that hold the experts of a layer; none of a network without experts.

    They have two stacked matrices at least, one to go up and one to come down.
    """
    parts: list[tuple[str, Any]] = model.named_modules()
    return [
        (part, name, child)
        for _, part in parts
        for name, child in part.children().items()
        if isinstance(child, nn.Module) and _holds_gathered(child)
    ]


def _holds_gathered(part: Any) -> bool:
    return sum(type(each).__name__ in GATHERED for each in part.children().values()) > 1


@contextmanager
def noted_choices(places: Sequence[Place]) -> Generator[list[mx.array]]:
    """The experts of each row (..., experts a row) of each call, in order, while this is open.

    Nothing is noted of a loop that reaches into the parts instead of calling them.
    """
    choices: list[mx.array] = []
    try:
        for part, name, child in places:
            setattr(part, name, _Noting(child, choices))
        yield choices
    finally:
        for part, name, child in places:
            setattr(part, name, child)


def distinct_experts(choices: Sequence[mx.array], rows: int) -> float:
    """Mean number of different experts of the calls with so many rows; 0 if there are none.

    >>> one, two = mx.array([[[0, 1], [0, 2]]]), mx.array([[[3, 1], [3, 1]]])
    >>> distinct_experts([one, two, mx.array([[[0, 1]]])], rows=2)
    2.5
    """
    of_interest: list[Any] = [each for each in choices if each.size == rows * each.shape[-1]]
    counts = [len(set(each.flatten().tolist())) for each in of_interest]
    return fmean(counts) if counts else 0.0


@final
class _Noting(nn.Module):
    """A part in the place of another one, which it calls."""

    def __init__(self, noted: nn.Module, choices: list[mx.array]) -> None:
        super().__init__()
        # In a tuple, so that MLX does not take it for a part of its own.
        self["_noted"], self["_choices"] = (noted,), choices

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Rows, the numbers of their experts, and perhaps what each expert counts for."""
        given = (*inputs, *named.values())
        arrays = [each for each in given if isinstance(each, mx.array)]
        self._choices.extend(each for each in arrays if mx.issubdtype(each.dtype, mx.integer))
        return self._noted[0](*inputs, **named)

    def __getattr__(self, name: str) -> Any:
        held = cast("dict[str, Any]", self)
        return held[name] if name in held else getattr(held["_noted"][0], name)
