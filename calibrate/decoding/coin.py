r"""Forced acceptance: a seeded coin decides which draft tokens the target accepts.

Random weights cost what real ones cost, but a random target agrees with no draft. So the real
draft and verify passes run, and only the verdict is replaced: each draft token is accepted with
probability :math:`\alpha`, given that all before it were, and what follows (the roll back of both
caches, the draft's pass over two rows after it was right throughout) is real. Tokens per pass of
rounds of k come out at :math:`(1 - \alpha^{k+1}) / (1 - \alpha)`
(:mod:`model.progress.acceptance`). The price is four kernels of a few numbers a round.
"""

from __future__ import annotations

from typing import final

import mlx.core as mx

from calibrate.coin import Coin


@final
class CoinSampler:
    """A greedy sampler for mlx-lm's speculation that lets a coin speak for the target.

    mlx-lm calls one sampler for both networks: with one row for a draft token, with several for
    the verify pass. It accepts what is equal, so the target's tokens are made equal to as many
    draft tokens as the coin says, and different at the next.
    """

    def __init__(self, coin: Coin) -> None:
        self._coin = coin
        self._drafted: list[mx.array] = []

    def __call__(self, logprobs: mx.array) -> mx.array:
        """The draft's best token, or the tokens of the target as the coin wants them."""
        best = mx.argmax(logprobs, axis=-1)
        if best.shape[0] == 1:
            self._drafted.append(best)
            return best
        draft, self._drafted = mx.concatenate(self._drafted), []
        return overruled(best, draft, self._coin.accepted(draft.shape[0]), logprobs.shape[-1])


def overruled(best: mx.array, draft: mx.array, accepted: int, vocab_size: int) -> mx.array:
    """The target's tokens, equal to the draft's up to `accepted` and different right after it."""
    if accepted == draft.shape[0]:
        return mx.concatenate([draft, best[accepted:]])
    own, refused = best[accepted : accepted + 1], draft[accepted : accepted + 1]
    other = mx.where(own == refused, (refused + 1) % vocab_size, own)
    return mx.concatenate([draft[:accepted], other, best[accepted + 1 :]])
