"""DiffusionGemma through mlx-vlm's own loop, watched pass by pass.

The loop asks a model for the logits of a canvas, again and again, and for the canvas's place in
the cache once it is done; it is given an object in the model's place that passes all on. Which
tokens a pass fixes the loop reads from one function, which is watched too. On its last permitted
pass it takes every token as it is, without asking.
"""

# mlx-vlm has no hints, and MLX's own are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, final

import mlx.core as mx

from calibrate.networks import Network
from calibrate.run_settings import Settings
from calibrate.timing import Clock
from calibrate.vlm.choice import how_many, surest
from calibrate.vlm.commits import Commits
from calibrate.vlm.library import part, watched
from calibrate.vlm.passes import Denoised, Progress, Stopwatch
from model.errors import InputError

CHOICE = "_diffusion_confidence_transfer_mask"

Choice: TypeAlias = Callable[..., mx.array]


def denoise(
    network: Network,
    prompt: Sequence[int],
    answer: int,
    settings: Settings,
    clock: Clock,
    progress: Progress | None = None,
) -> Denoised:
    """Denoise an answer canvas by canvas; its last canvas is filled to its end.

    Raises:
        InputError: a block longer than the network's canvas.
    """
    longest = int(network.model.config.canvas_length)
    if settings.block > longest:
        wrong = f"is longer than the canvas of {network.name}"
        raise InputError(f"block of {settings.block}", wrong, f"give up to {longest}")
    loop = part("generate.diffusion")
    seen = _Watched(network.model, Stopwatch(clock), settings, progress)
    output: list[int] = []
    # One pass more than there are tokens, for the last one would not ask which to fix.
    steps = settings.block + 1 if seen.commits.forced else None
    mx.random.seed(settings.seed)  # a canvas begins as random tokens
    with watched(loop, CHOICE, seen.choice):
        for result in loop.stream_diffusion_generate(
            seen,
            _Silent(),
            _Silent(),
            mx.array([list(prompt)], mx.int32),
            None,
            None,
            max_tokens=answer,
            skip_special_token_ids=[],
            temperature=0.0,
            max_denoising_steps=steps,
            diffusion_min_canvas_length=settings.block,
            diffusion_max_canvas_length=settings.block,
            diffusion_threshold=settings.threshold,
        ):
            ends = result.diffusion_block_complete or result.finish_reason is not None
            if not ends:
                output.append(int(result.token))
    seen.stopwatch.lap()
    if progress is not None:
        progress(answer, answer)
    return Denoised(
        round_s=seen.stopwatch.round_s, commits=tuple(seen.committed()), output=tuple(output)
    )


@final
class _Watched:
    """The model, as the loop sees it; `choice` watches the function that says what is fixed."""

    def __init__(
        self, model: Any, stopwatch: Stopwatch, settings: Settings, progress: Progress | None
    ) -> None:
        self._model = model
        self.stopwatch = stopwatch
        self.commits = Commits(settings)
        self._block = settings.block
        self._progress = progress
        self._passes: list[bool] = []
        self._chosen: dict[int, mx.array] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def diffusion_decoder_logits(self, canvas: mx.array, **options: Any) -> mx.array:
        """A denoising pass begins."""
        self.stopwatch.lap()
        self._passes.append(True)
        return self._model.diffusion_decoder_logits(canvas, **options)

    def diffusion_update_cache(self, canvas: mx.array, *, cache: Any) -> Any:
        """A finished canvas is written to the cache.

        It is waited for, so that this pass has a time of its own; the loop would leave it to the
        next pass.
        """
        self.stopwatch.lap()
        self._passes.append(False)
        self.commits.new_block()
        if self._progress is not None:
            self._progress(self._passes.count(False) * self._block, None)
        written = self._model.diffusion_update_cache(canvas, cache=cache)
        mx.eval([each.state for each in written])
        return written

    def choice(self, choose: Choice) -> Choice:
        """The function that says which rows are fixed, noted or overruled."""

        def chosen(confidence: mx.array, open_rows: mx.array, *rest: Any, **options: Any):
            if self.commits.forced:
                fixed = surest(confidence, open_rows, self.commits.next())
            else:
                fixed = choose(confidence, open_rows, *rest, **options)
            self._chosen[len(self._passes) - 1] = fixed
            return fixed

        return chosen

    def committed(self) -> Iterator[int]:
        """Tokens that each pass fixed. Counted only now: before, it would cost time."""
        left = self._block
        for number, denoises in enumerate(self._passes):
            if not denoises:
                yield 0
                left = self._block
                continue
            ends = number + 1 == len(self._passes) or not self._passes[number + 1]
            fixed = self._chosen.get(number)
            count = left if ends or fixed is None else how_many(fixed)
            yield count
            left -= count


@final
class _Silent:
    """A tokenizer and its detokenizer that say nothing and end nothing: only tokens are wanted."""

    last_segment = ""

    @property
    def detokenizer(self) -> _Silent:
        """Itself."""
        return self

    def stopping_criteria(self, token: int) -> bool:
        """No token ends an answer: every answer has its full length."""
        del token
        return False

    def reset(self) -> None:
        """Nothing was kept."""

    def add_token(self, token: int, skip_special_token_ids: Sequence[int] = ()) -> None:
        """Nothing is kept."""

    def finalize(self) -> None:
        """Nothing is left."""
