"""mlx-lm's own speculation: a draft guesses, the target checks, both caches roll back.

The draft is another network or the target's own incomplete one
(:mod:`calibrate.decoding.layer_skip`).
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib

from mlx_lm.generate import speculative_generate_step

from calibrate.coin import Coin
from calibrate.decoding.coin import CoinSampler
from calibrate.decoding.start import Start
from calibrate.decoding.streams import Arrivals, Loop
from calibrate.networks import Network


def speculative_loop(
    target: Network,
    draft: Network,
    draft_length: int,
    *,
    forced_acceptance: float | None = None,
    seed: int = 0,
) -> Loop:
    """Rounds of `draft_length` draft passes and one pass of the target over one row more.

    With a forced acceptance a coin decides in the target's place; see
    :mod:`calibrate.decoding.coin`.
    """

    def loop(start: Start, tokens: int) -> Arrivals:
        held = start.holds(target) and start.holds(draft)
        caches = [*start.caches(target), *start.caches(draft)] if held else None
        coin = None if forced_acceptance is None else Coin(forced_acceptance, seed)
        # Asked for just `tokens`, mlx-lm would draft fewer in the last rounds and cut the last.
        stream = speculative_generate_step(
            start.last if held else start.prompt,
            target.model,
            draft.model,
            num_draft_tokens=draft_length,
            max_tokens=tokens + draft_length + 1,
            sampler=None if coin is None else CoinSampler(coin),
            prompt_cache=caches,
        )
        with contextlib.closing(stream):
            for token, _, from_draft in stream:
                yield int(token), bool(from_draft)

    return loop
