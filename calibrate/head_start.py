"""Giving the host a head start: work is queued while the device is kept busy with something else.

A chain of short kernels takes as long as the host needs to submit them, not as long as they run:
on an H200 a product of 16-bit weights costs the host 15 to 45 us, and the device 5. So a *blocker*
goes first, and the chain is submitted behind it. Once the blocker has ended, all that is left to
wait for is the device's own time.

It works only if the host is done before the blocker is. Where it is not, because it is too slow or
because MLX limits what may be under way, the caller learns it and measures the plain way. The host
sees the end of the blocker as late as the end of the chain, by some 100 us, unless it is held up at
one of them: so a repetition may be too short as well as too long, and the middle one of several
counts (:class:`calibrate.timing.Visit`).
"""

# MLX's stubs leave some arguments untyped, those of `eval` among them.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import final

import mlx.core as mx

KERNELS_AHEAD = 800
ELEMENTS_AHEAD = 8_000_000_000
"""What may wait for the device: MLX lets ten of its buffers be under way (mlx 0.32,
`transforms.cpp`), of 100 kernels or 10^9 elements each on an H200 (`cuda/device.cpp`)."""
PRODUCT_S = 0.001
"""What one product of a blocker takes at least."""
LARGEST_SIDE = 16_384
FIRST_PRODUCTS, MOST_PRODUCTS = 2, 32
WAITED_S = 1e-4
"""Having to wait longer than this for the blocker shows that it was still running."""
MOST_FAILURES = 12
"""Chains that no blocker was long enough for, after which no more are tried if none ever was."""


@final
class HeadStart:
    """The blocker of one device: as long as its host turned out to need."""

    def __init__(self) -> None:
        self._factor: mx.array | None = None
        self._products = FIRST_PRODUCTS
        self._failures = 0
        self._succeeded = False

    @property
    def is_hopeless(self) -> bool:
        """Whether the host was too slow for the longest blocker whenever it was tried."""
        return self._failures >= MOST_FAILURES and not self._succeeded

    def submitted(self, build: Callable[[], Sequence[mx.array]]) -> Sequence[mx.array] | None:
        """Submit graphs behind a blocker; those that have just begun, as it has just ended.

        `build` makes the graphs, as often as it takes to find a blocker that is long enough.
        None if there is none.
        """
        if self.is_hopeless:
            return None
        while True:
            pieces = build()
            begun = time.perf_counter()
            blocker = self._blocker()
            mx.async_eval(blocker)
            for piece in pieces:
                mx.async_eval(piece)
            submitted = time.perf_counter()
            mx.eval(blocker)
            ended = time.perf_counter()
            if ended - submitted > WAITED_S:
                self._succeeded = True
                if submitted - begun < (ended - begun) / 4:
                    self._products = max(self._products // 2, 1)
                return pieces
            mx.eval(pieces[-1])
            if self._products == MOST_PRODUCTS:
                self._failures += 1
                self._products = FIRST_PRODUCTS
                return None
            self._products *= 2

    def _blocker(self) -> mx.array:
        if self._factor is None:
            self._factor = factor()
        value = self._factor
        for _ in range(self._products):
            value = value @ self._factor
        return value


def factor() -> mx.array:
    """A square matrix, so large that its product with itself takes PRODUCT_S or more."""
    side = 1024
    while True:
        # Its powers neither grow nor die out.
        matrix = (mx.random.normal((side, side)) / side**0.5).astype(mx.bfloat16)
        mx.eval(matrix, matrix @ matrix)
        begun = time.perf_counter()
        mx.eval(matrix @ matrix)
        if time.perf_counter() - begun >= PRODUCT_S or side >= LARGEST_SIDE:
            return matrix
        side *= 2
