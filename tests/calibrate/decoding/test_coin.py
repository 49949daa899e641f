# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

import math

import mlx.core as mx
import numpy as np
import pytest

from calibrate.coin import Coin
from calibrate.decode import Pace, decode, speculation
from calibrate.decoding.coin import overruled
from calibrate.decoding.loops import arm
from calibrate.decoding.start import Start
from calibrate.networks import Network
from calibrate.run_record import Run
from calibrate.run_settings import Settings, layer_skip
from model.network.sublayers import Half, Sublayer
from model.progress.acceptance import tokens_per_pass
from tests.calibrate.decoding.networks import LLAMA, PROMPT, network


class TestCoin:
    @pytest.mark.parametrize("acceptance", [0.0, 0.3, 0.6, 0.9, 1.0])
    @pytest.mark.parametrize("length", [1, 4, 15])
    def test_tokens_per_pass_are_the_closed_form(self, acceptance: float, length: int) -> None:
        coin = Coin(acceptance, seed=1)
        counts = np.array([coin.accepted(length) for _ in range(20_000)])
        stderr = counts.std() / math.sqrt(len(counts))
        expected = float(tokens_per_pass(acceptance, length))
        assert abs(1.0 + counts.mean() - expected) <= 4.0 * stderr + 1e-12

    def test_equal_seeds_draw_equal_rounds(self) -> None:
        coins = [Coin(0.5, seed) for seed in (3, 3, 4)]
        draws = [[coin.accepted(6) for _ in range(50)] for coin in coins]
        assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [(0, [6, 2, 3, 4]), (1, [5, 2, 3, 4]), (2, [5, 7, 3, 4]), (3, [5, 7, 9, 4])],
)
def test_the_targets_tokens_agree_as_far_as_the_coin_says(
    accepted: int, expected: list[int]
) -> None:
    """The draft is 5, 7, 9; the target's own first token happens to be the draft's."""
    best, draft = mx.array([5, 2, 3, 4]), mx.array([5, 7, 9])
    assert overruled(best, draft, accepted, vocab_size=10).tolist() == expected


@pytest.fixture(scope="module")
def target() -> Network:
    return network(LLAMA)


@pytest.fixture(scope="module")
def stranger() -> Network:
    return network(LLAMA | {"num_hidden_layers": 1}, seed=5)


def settings(kind: str, draft: Network, length: int, acceptance: float) -> Settings:
    if kind == "speculative":
        return speculation(draft, length, acceptance, seed=2)
    if kind == "layer-skip":
        skipped = frozenset(Sublayer(layer=2, half=half) for half in Half)
        return layer_skip(skipped, length, acceptance, seed=2)
    return Settings(
        strategy=kind, draft_length=length, ngram=3, forced_acceptance=acceptance, seed=2
    )


def forced_run(target: Network, draft: Network, kind: str, tokens: int, acceptance: float) -> Run:
    made = arm(
        target, settings(kind, draft, 3, acceptance), draft if kind == "speculative" else None
    )
    return decode(made, Start(PROMPT), tokens, Pace(warm_up=False))


@pytest.mark.parametrize("kind", ["speculative", "layer-skip", "prompt-lookup"])
class TestForcedRuns:
    def test_each_round_accepts_what_the_coin_drew(
        self, target: Network, stranger: Network, kind: str
    ) -> None:
        run = forced_run(target, stranger, kind, 40, 0.6)
        coin = Coin(0.6, seed=2)
        draws = [coin.accepted(3) for _ in range(1 + len(run.accepted))]
        assert list(run.accepted) == draws[1:]
        assert 0 < sum(run.accepted) < 3 * len(run.accepted)

    @pytest.mark.parametrize("acceptance", [0.0, 1.0])
    def test_never_and_always(
        self, target: Network, stranger: Network, kind: str, acceptance: float
    ) -> None:
        run = forced_run(target, stranger, kind, 12, acceptance)
        assert set(run.accepted) == {3 * acceptance}

    def test_the_caches_roll_back_to_what_was_accepted(
        self, target: Network, stranger: Network, kind: str
    ) -> None:
        """Every token that is the target's own is its best one after the whole text so far.

        Were a rejected token still in the cache, it would not be. Where the draft had guessed
        right and the coin said no, it is the next number.
        """
        run = forced_run(target, stranger, kind, 40, 0.5)
        text = [*PROMPT, *run.output]
        best = np.array(mx.argmax(target.model(mx.array([text]))[0], axis=-1))
        place, own = len(PROMPT), list[int]()
        coin = Coin(0.5, seed=2)
        while (place := place + coin.accepted(3)) < len(text):
            own.append(text[place] - int(best[place - 1]))
            place += 1
        assert set(own) <= {0, 1}
        assert own.count(0) > len(own) / 2
