"""The passes of one answer of block diffusion, as they were seen from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

from calibrate.timing import Clock

Progress: TypeAlias = Callable[[int, int | None], None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Denoised:
    """What an answer took.

    Attributes:
        round_s: Time of each pass, from its own start to that of the next.
        commits: Tokens that each pass fixed; 0 where it wrote a finished block to the cache.
        output: The answer's tokens.
        new_shapes: Whether each pass met attention of a shape new to the process; empty where that
            costs nothing.
    """

    round_s: tuple[float, ...]
    commits: tuple[int, ...]
    output: tuple[int, ...]
    new_shapes: tuple[bool, ...] = ()


@final
class Stopwatch:
    """When each pass began. mlx-vlm waits for each before the next, so that these are all times."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: list[float] = []

    def lap(self) -> None:
        """A pass begins, or the last one is over."""
        self._begun.append(self._clock())

    @property
    def round_s(self) -> tuple[float, ...]:
        """The time of every pass."""
        pairs = zip(self._begun, self._begun[1:], strict=False)
        return tuple(end - start for start, end in pairs)
