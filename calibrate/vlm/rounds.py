"""Rounds of a trained head, and plain decoding beside them, by mlx-vlm's own loop.

The library yields token after token, and notes for each round how many of them the head had
guessed. Some block drafters would draft fewer where little is accepted; here the draft length is
kept.
"""

# mlx-vlm has no hints, and MLX's own are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import contextlib
from typing import Any

import mlx.core as mx

from calibrate.coin import Coin
from calibrate.decoding.loops import Arm
from calibrate.decoding.start import Start
from calibrate.decoding.streams import Arrivals, Loop
from calibrate.networks import Network
from calibrate.run_settings import Settings
from calibrate.vlm.heads import Head, check_pair
from calibrate.vlm.library import library_name, part
from calibrate.vlm.verdict import overruled
from model.errors import InputError


def check_length(head: Head, length: int) -> None:
    """Refuse a head that drafts otherwise than it is asked to: a record has one draft length.

    Raises:
        InputError: its last round had more or fewer tokens.
    """
    noted: list[int] = getattr(head.network.model, "draft_lens", [])
    if noted and noted[-1] != length:
        wrong = f"drafts {noted[-1]} tokens in a round where {length} are asked for"
        raise InputError(f"head {head.network.name}", wrong, f"give --draft-length {noted[-1]}")


def plain_arm(target: Network) -> Arm:
    """One token a pass, as mlx-vlm decodes it."""
    loop = _loop(target, None, 0)
    return Arm(
        target=target,
        settings=Settings(strategy="plain"),
        draft=None,
        loop=loop,
        warm_loops=(loop,),
        library=library_name(),
    )


def head_arm(target: Network, head: Head, settings: Settings) -> Arm:
    """Rounds of a head's draft and a pass of the target, ready to decode.

    Raises:
        InputError: mlx-vlm cannot run the pair.
    """
    check_pair(target, head)
    length, forced = settings.draft_length, settings.forced_acceptance
    loop = _loop(target, head, length, forced, settings.seed)
    return Arm(
        target=target,
        settings=settings,
        draft=head.network,
        loop=loop,
        warm_loops=(_loop(target, head, length, 1.0), loop),
        library=library_name(),
    )


def _loop(
    target: Network, head: Head | None, length: int, forced: float | None = None, seed: int = 0
) -> Loop:
    generate = part("generate.ar").generate_step
    stream = part("generate.common").generation_stream

    def loop(start: Start, tokens: int) -> Arrivals:
        options: dict[str, Any] = {}
        rounds: list[int] = []
        if head is not None:
            head.network.model.accept_lens = rounds
            head.network.model.prefer_requested_block_size = True  # or some would draft fewer
            options = {
                "draft_model": head.network.model,
                "draft_kind": head.kind,
                "draft_block_size": length + 1,
            }
        coin = None if forced is None else Coin(forced, seed)
        # Asked for just `tokens`, it would draft fewer in the last rounds.
        arrivals = generate(
            start.prompt[None],
            target.model,
            None,
            None,
            max_tokens=tokens + length + 1,
            temperature=0.0,
            **options,
        )
        with contextlib.closing(arrivals), overruled(None if head is None else head.kind, coin):
            seen, left = 0, 0
            for token, _ in arrivals:
                if head is not None:
                    noted = head.network.model.accept_lens
                    if noted is not rounds and len(noted) > seen:
                        seen, left = len(noted), int(noted[-1])
                        check_length(head, length)
                yield int(token), left > 0
                left -= 1
        mx.synchronize(stream)

    return loop
