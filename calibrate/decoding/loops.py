"""From settings to the loop that is timed, and the loops that warm its shapes before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from calibrate.decoding.batch import batch_loop
from calibrate.decoding.canvas import canvas_loop
from calibrate.decoding.checks import check_positions, check_rollback, check_vocabularies
from calibrate.decoding.layer_skip import self_draft
from calibrate.decoding.plain import awaited_loop, plain_loop
from calibrate.decoding.prompt_lookup import LookupLoop
from calibrate.decoding.speculative import speculative_loop
from calibrate.decoding.streams import Loop
from calibrate.networks import Network
from calibrate.run_settings import Settings
from model.errors import InputError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Networks and settings, ready to decode: one arm of a comparison.

    `networks` are all whose caches a start may keep. `warm_loops` together run each shape of pass
    that the loop can meet; `lookup` is the loop where it counts its own proposals. `library` is
    whose loop it is where that is not mlx-lm, with its version: it takes back rejected tokens by
    ways of its own, and from caches from which mlx-lm cannot.
    """

    target: Network
    settings: Settings
    draft: Network | None
    loop: Loop
    warm_loops: tuple[Loop, ...]
    lookup: LookupLoop | None = None
    library: str = ""

    @property
    def networks(self) -> tuple[Network, ...]:
        """The target, and the draft where it is another network or keeps caches of its own."""
        return (self.target,) if self.draft is None else (self.target, self.draft)

    def positions(self, context: int, tokens: int) -> int:
        """The most tokens that a cache holds on the way, those rejected included."""
        rows = 2 * self.settings.draft_length + 1 if self.settings.draft_length else 0
        return context + tokens + rows + self.settings.canvas

    def check(self, context: int, tokens: int) -> None:
        """Refuse what cannot be decoded from such a context.

        Raises:
            InputError: the networks take fewer tokens, a cache cannot go back, or all tokens may
                come in the first round, which is not listed.
        """
        positions = self.positions(context, tokens)
        least = self.settings.draft_length + 2
        if tokens < least:
            wrong = "may all come in the first round"
            raise InputError(f"{tokens} tokens", wrong, f"give {least} at least")
        for network in self.networks:
            check_positions(network, context, positions)
            if (self.settings.draft_length or self.settings.canvas) and not self.library:
                check_rollback(network, positions)


def arm(target: Network, settings: Settings, draft: Network | None = None) -> Arm:
    """The arm of a target and settings; a draft model comes with its network.

    Raises:
        InputError: the draft speaks other tokens, or the target's layers cannot be skipped.
    """
    forced, seed, length = settings.forced_acceptance, settings.seed, settings.draft_length
    lookup: LookupLoop | None = None
    if settings.strategy == "layer-skip":
        draft = self_draft(target, settings.skipped)
    if settings.strategy == "speculative":
        if draft is None:
            raise InputError("run speculative", "needs a draft", "add --draft MODEL")
        check_vocabularies(target, draft)
    if draft is not None:
        loop = speculative_loop(target, draft, length, forced_acceptance=forced, seed=seed)
        # After full acceptance the draft runs over two rows. A bad draft may not get there in the
        # warm-up, but any draft does with a coin that always says yes.
        always = speculative_loop(target, draft, length, forced_acceptance=1.0)
        warm_loops: tuple[Loop, ...] = (always, loop)
    elif settings.strategy == "prompt-lookup":
        loop = lookup = LookupLoop(
            target, length, settings.ngram, forced_acceptance=forced, seed=seed
        )
        always = LookupLoop(target, length, settings.ngram, forced_acceptance=1.0)
        warm_loops = (always, plain_loop(target))
    else:
        loop = {
            "plain": lambda: plain_loop(target),
            "awaited": lambda: awaited_loop(target),
            "batch": lambda: batch_loop(target, settings.batch),
            "canvas": lambda: canvas_loop(target, settings.canvas),
        }[settings.strategy]()
        warm_loops = (loop,)
    return Arm(
        target=target,
        settings=settings,
        draft=draft,
        loop=loop,
        warm_loops=warm_loops,
        lookup=lookup,
    )
