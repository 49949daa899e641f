"""How far a measurement is: a bar on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NoReturn, Protocol, TextIO, final

from tqdm import tqdm

from calibrate.timing import Clock

LINE_EVERY_S = 10.0


class Progress(Protocol):
    """Told what a measurement does; times are expected ones, and sum to the total."""

    def start(self, total_s: float, message: str) -> None:
        """The measurement begins, and is expected to take `total_s`."""
        ...

    def advance(self, expected_s: float, now_at: str) -> None:
        """Work that was expected to take `expected_s` is over."""
        ...

    def say(self, message: str) -> None:
        """Something worth a line of its own."""
        ...

    def close(self) -> None:
        """The measurement is over, or was interrupted."""
        ...


@final
class Lines:
    """Progress for logs and pipes: a line at the start, and one about every ten seconds."""

    def __init__(self, stream: TextIO, clock: Clock = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._total_s = self._done_s = 0.0
        self._next_s = 0.0

    def start(self, total_s: float, message: str) -> None:
        """Say what begins."""
        self._total_s = total_s
        self._next_s = self._clock() + LINE_EVERY_S
        self.say(message)

    def advance(self, expected_s: float, now_at: str) -> None:
        """Say how far it is, unless a line was just printed."""
        self._done_s += expected_s
        if self._clock() >= self._next_s:
            share = self._done_s / self._total_s if self._total_s else 1.0
            self._next_s = self._clock() + LINE_EVERY_S
            self.say(f"{share:4.0%}  {now_at}")

    def say(self, message: str) -> None:
        """Print a line."""
        print(message, file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing is left to do."""


@final
class Bar:
    """Progress for a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: tqdm[NoReturn] | None = None

    def start(self, total_s: float, message: str) -> None:
        """Say what begins, and show the bar."""
        self.say(message)
        layout = "{percentage:3.0f}%|{bar}| {elapsed}<{remaining} {desc}"
        self._bar = tqdm(
            total=total_s, file=self._stream, bar_format=layout, dynamic_ncols=True, leave=False
        )

    def advance(self, expected_s: float, now_at: str) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.set_description_str(now_at, refresh=False)
            self._bar.update(expected_s)

    def say(self, message: str) -> None:
        """Print a line above the bar."""
        tqdm.write(message, file=self._stream)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


@contextmanager
def token_bar(
    stream: TextIO | None = None, unit: str = " tokens"
) -> Generator[Callable[[int, int | None], None]]:
    """A bar of decoded tokens or whatever `unit` says, of a number that may not be known.

    It is told how many are done; nothing is shown where nobody looks.
    """
    shown_on = sys.stderr if stream is None else stream
    hidden = not shown_on.isatty()
    bar = tqdm(file=shown_on, disable=hidden, leave=False, unit=unit, dynamic_ncols=True)

    def tell(done: int, wanted: int | None) -> None:
        bar.total = wanted
        bar.update(done - bar.n)

    with bar:
        yield tell


def progress_on(stream: TextIO = sys.stderr) -> Progress:
    """A bar if somebody looks at the stream, else lines."""
    return Bar(stream) if stream.isatty() else Lines(stream)
