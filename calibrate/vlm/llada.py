"""LLaDA 2 through mlx-vlm's own loop, watched pass by pass.

The loop is a method of the library's language model and reads everything from `self`. Here it is
given an object in the model's place that passes all on to the model, and notes the rows of every
pass on the way. A prompt is read in whole blocks; what is left of it begins the first block.
"""

# mlx-vlm has no hints, and MLX's own are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, final

import mlx.core as mx

from calibrate.networks import Network
from calibrate.run_settings import Settings
from calibrate.timing import Clock
from calibrate.vlm.attention_plans import new_shapes
from calibrate.vlm.choice import how_many, surest
from calibrate.vlm.commits import Commits
from calibrate.vlm.passes import Denoised, Progress, Stopwatch

NO_END = -1
"""In the place of the token that ends an answer: every answer has its full length."""
SURE = 2.0
"""Beyond any threshold of confidence."""


def denoise(
    network: Network,
    prompt: Sequence[int],
    answer: int,
    settings: Settings,
    clock: Clock,
    progress: Progress | None = None,
) -> Denoised:
    """Denoise an answer; its last block is filled to its end, and what is behind it thrown away."""
    block, language_model = settings.block, network.model.language_model
    whole = -(-(len(prompt) + answer) // block) * block
    passes = _Passes(language_model, Stopwatch(clock))
    watched = _Watched(language_model, passes, settings, progress)
    output: mx.array = type(language_model).generate(
        watched,
        mx.array([list(prompt)], mx.int32),
        block_length=block,
        steps=block,
        gen_length=whole - len(prompt),
        eos_id=NO_END,
        **({} if settings.threshold is None else {"threshold": settings.threshold}),
    )
    mx.eval(output)
    passes.stopwatch.lap()
    if progress is not None:
        progress(answer, answer)
    tokens: list[int] = output[0, :answer].tolist()  # pyright: ignore[reportAssignmentType]
    return passes.denoised(tuple(tokens))


@final
class _Passes:
    """The body of the network, and what went through it."""

    def __init__(self, language_model: Any, stopwatch: Stopwatch) -> None:
        self._body = language_model.model
        self._mask = language_model.config.mask_token_id
        self._is_new = new_shapes(language_model)
        self._new_shapes: list[bool] = []
        self.stopwatch = stopwatch
        self._rows: list[mx.array] = []
        self._denoises: list[bool] = []

    def __call__(self, rows: mx.array, cache: Any = None) -> mx.array:
        self.stopwatch.lap()
        self._rows.append(rows)
        self._denoises.append(False)
        if self._is_new is not None:
            self._new_shapes.append(self._is_new(cache[0], rows.shape[1]))
        return self._body(rows, cache=cache)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    @property
    def masked(self) -> mx.array:
        """Which rows of the last pass were masks."""
        return self._rows[-1] == self._mask

    def denoising(self) -> bool:
        """The last pass was one that denoises; whether it is the first of its block."""
        begins = not any(self._denoises[-2:-1])
        self._denoises[-1] = True
        return begins

    def denoised(self, output: tuple[int, ...]) -> Denoised:
        """The passes after the prompt was read. Counted only now: before, it would cost time."""
        masked = [how_many(rows == self._mask) for rows in self._rows]
        commits = [
            before - after if denoises else 0
            for denoises, (before, after) in zip(
                self._denoises, pairwise([*masked, 0]), strict=True
            )
        ]
        first = self._denoises.index(True)
        return Denoised(
            round_s=self.stopwatch.round_s[first:],
            commits=tuple(commits[first:]),
            output=output,
            new_shapes=tuple(self._new_shapes[first:]),
        )


@final
class _Watched:
    """The language model, as its own loop sees it."""

    def __init__(
        self, language_model: Any, passes: _Passes, settings: Settings, progress: Progress | None
    ) -> None:
        self.model = passes
        self._language_model = language_model
        self._block, self._blocks = settings.block, 0
        self._commits = Commits(settings)
        self._progress = progress

    def __getattr__(self, name: str) -> Any:
        return getattr(self._language_model, name)

    def _sample_with_temperature_topk_topp(
        self, logits: mx.array, **options: Any
    ) -> tuple[mx.array, mx.array]:
        """The best token of each row, and how sure it is. Only denoising passes ask for them."""
        sample = self._language_model._sample_with_temperature_topk_topp
        best, confidence = sample(logits, **options)
        if self.model.denoising():
            self._commits.new_block()
            if self._progress is not None and self._blocks:
                self._progress(self._blocks * self._block, None)
            self._blocks += 1
        if self._commits.forced:
            chosen = surest(confidence, self.model.masked, self._commits.next())
            confidence = mx.where(chosen, SURE, 0.0)
        return best, confidence
