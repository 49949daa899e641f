"""Prompt lookup: the draft is copied from where the last few tokens occurred before.

The search finds the longest run of tokens, up to `ngram`, with which the text ends and which it
had before, and of its occurrences the last. What followed it there is proposed; a copy that
reaches the end of the text goes on with what it has just copied, as in LZ77, so that a match
always gives `draft_length` tokens. Every run of tokens is indexed as it comes in, so a search
costs some look-ups whatever the length of the text. mlx-lm has no such loop; this one verifies
and rolls back as its speculation does.
"""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import mlx.core as mx
from mlx_lm.generate import generation_stream
from mlx_lm.models.cache import trim_prompt_cache

from calibrate.coin import Coin
from calibrate.decoding.start import Start
from calibrate.decoding.streams import Arrivals
from calibrate.networks import Network


@final
class Text:
    """Tokens, and where each run of up to `ngram` of them was last followed by another."""

    def __init__(self, tokens: Iterable[int], ngram: int) -> None:
        self._ngram = ngram
        self._tokens: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}
        self.extend(tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        """Append tokens."""
        for token in tokens:
            end = len(self._tokens)
            for length in range(1, min(self._ngram, end) + 1):
                self._after[tuple(self._tokens[end - length :])] = end
            self._tokens.append(token)

    def continuation(self, count: int) -> list[int]:
        """What followed the longest run that the text ends with; empty where there is none.

        >>> Text([5, 6, 7, 8, 5, 6], ngram=3).continuation(3)
        [7, 8, 5]
        >>> Text([1, 2, 9, 9], ngram=3).continuation(3), Text([1, 2, 3], ngram=3).continuation(3)
        ([9, 9, 9], [])
        """
        end = len(self._tokens)
        for length in range(min(self._ngram, end), 0, -1):
            source = self._after.get(tuple(self._tokens[end - length :]))
            if source is not None:
                copied = self._tokens[source : source + count]
                period = end - source
                while len(copied) < count:
                    copied.append(copied[len(copied) - period])
                return copied
        return []

    def ending(self, count: int) -> list[int]:
        """The last tokens, repeated where there are fewer."""
        return (self._tokens * -(-count // len(self._tokens)))[-count:]


@final
class LookupLoop:
    """Rounds of a search and one awaited pass; `proposed` counts the draft tokens of each."""

    def __init__(
        self,
        target: Network,
        draft_length: int,
        ngram: int,
        *,
        forced_acceptance: float | None = None,
        seed: int = 0,
    ) -> None:
        self._target = target
        self._draft_length = draft_length
        self._ngram = ngram
        self._forced_acceptance = forced_acceptance
        self._seed = seed
        self.proposed: list[int] = []

    def __call__(self, start: Start, tokens: int) -> Arrivals:
        """Decode at least so many tokens.

        With a forced acceptance every round drafts: where nothing matches, the last tokens are
        proposed, for the coin decides anyway.
        """
        forced = self._forced_acceptance
        coin = None if forced is None else Coin(forced, self._seed)
        self.proposed = []
        text = Text(start.tokens, self._ngram)
        last, count = start.tokens[-1], 0
        with mx.stream(generation_stream):
            caches = start.caches(self._target)
            while count < tokens:
                draft = text.continuation(self._draft_length)
                if coin is not None and not draft:
                    draft = text.ending(self._draft_length)
                rows = mx.array([[last, *draft]], mx.uint32)
                logits = self._target.model(rows, cache=caches)[0]
                best = mx.argmax(logits - mx.logsumexp(logits, axis=-1, keepdims=True), axis=-1)
                verdict: Any = best.tolist()
                accepted = coin.accepted(len(draft)) if coin else agreed(draft, verdict)
                trim_prompt_cache(caches, len(draft) - accepted)
                last = verdict[accepted]
                kept = [*draft[:accepted], last]
                text.extend(kept)
                self.proposed.append(len(draft))
                count += len(kept)
                yield from ((token, True) for token in draft[:accepted])
                yield last, False


def agreed(draft: list[int], verdict: list[int]) -> int:
    """How many draft tokens are the target's own, before the first that is not.

    >>> agreed([4, 5, 6], [4, 5, 9, 1])
    2
    """
    pairs = enumerate(zip(draft, verdict, strict=False))
    return next((index for index, (one, other) in pairs if one != other), len(draft))
