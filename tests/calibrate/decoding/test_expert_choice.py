"""What a pass reads of a mixture, counted: that it is what the router chose, and only watched."""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from calibrate import decode as decode_module
from calibrate.decode import COUNTED_ROUNDS, Pace, decode
from calibrate.decoding.expert_choice import distinct_experts, noted_choices, switches
from calibrate.decoding.loops import arm
from calibrate.decoding.start import Start
from calibrate.networks import Network
from calibrate.run_settings import Settings
from model.cost.moe import distinct_by_chance
from tests.calibrate.decoding.networks import LLAMA, QWEN3_MOE
from tests.calibrate.decoding.networks import network as random_network

PROMPT = tuple(range(1, 33))


@pytest.fixture(scope="module")
def mixture() -> Network:
    return random_network(QWEN3_MOE | {"num_experts": 8})


def rows_of(network: Network, rows: int) -> mx.array:
    tokens = np.random.default_rng(0).integers(0, network.vocab_size, (1, rows))
    return mx.array(tokens.astype(np.uint32))


def test_every_layer_is_noted_once_a_pass_and_none_afterwards(mixture: Network) -> None:
    places, before = switches(mixture.model), mixture.model(rows_of(mixture, 4))
    assert len(places) == len(mixture.model.layers)
    with noted_choices(places) as choices:
        watched = mixture.model(rows_of(mixture, 4))
    assert mx.array_equal(watched, before)
    assert [each.shape for each in choices] == [(1, 4, 2)] * len(places)
    mixture.model(rows_of(mixture, 4))
    assert len(choices) == len(places)


def test_only_calls_with_so_many_rows_count() -> None:
    calls = [
        mx.array([[[0, 1], [2, 3]]]),
        mx.array([[[0, 1]]]),
        mx.array([[[0, 1], [2, 3], [4, 5]]]),
    ]
    assert [distinct_experts(calls, rows) for rows in (1, 2, 3, 4)] == [2.0, 4.0, 6.0, 0.0]


def test_a_loop_may_reach_into_a_part_and_then_notes_nothing(mixture: Network) -> None:
    places = switches(mixture.model)
    own: list[Any] = [child["up_proj"] for _, _, child in places]
    with noted_choices(places) as choices:
        reached = [layer.mlp.switch_mlp.up_proj for layer in mixture.model.layers]
    assert {id(each) for each in reached} == {id(each) for each in own}
    assert choices == []


@pytest.mark.parametrize(
    "settings",
    [
        Settings(strategy="canvas", canvas=len(PROMPT) - 1),
        Settings(strategy="prompt-lookup", draft_length=7, ngram=2, forced_acceptance=0.0),
    ],
    ids=lambda settings: settings.strategy,
)
def test_so_many_rounds_are_counted_and_not_the_prompt(
    mixture: Network, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """Though it is read in as many rows as the canvas has, or no draft token is accepted."""
    seen: list[int] = []

    def spied(choices: list[mx.array], rows: int) -> float:
        seen.append(len(choices))
        return distinct_experts(choices, rows)

    monkeypatch.setattr(decode_module, "distinct_experts", spied)
    decode(arm(mixture, settings), Start(PROMPT), 12, Pace())
    assert seen == [COUNTED_ROUNDS * len(switches(mixture.model))]


def test_the_network_is_put_together_again_after_an_error(mixture: Network) -> None:
    places = switches(mixture.model)
    with pytest.raises(KeyError), noted_choices(places):
        raise KeyError
    assert [id(child) for _, _, child in switches(mixture.model)] == [
        id(child) for _, _, child in places
    ]


def test_the_count_is_of_the_best_by_the_router_itself(mixture: Network) -> None:
    """The first layer's experts, by its own router on its own input."""
    layer, seen = mixture.model.layers[0], list[Any]()
    router = layer.mlp.gate

    class Seen(nn.Module):
        def __call__(self, x: mx.array) -> mx.array:
            seen.append(router(x))
            return seen[-1]

    layer.mlp.gate = Seen()
    try:
        with noted_choices(switches(mixture.model)) as choices:
            mixture.model(rows_of(mixture, 6))
    finally:
        layer.mlp.gate = router
    best = np.argsort(-np.array(seen[0]), axis=-1)[..., :2]
    assert distinct_experts(choices[:1], 6) == len(np.unique(best))


def test_rows_of_a_random_mixture_choose_as_if_by_chance() -> None:
    """Attention gives all rows the same mean; embeddings as large as those of trained networks
    keep them apart. Drawn as matrices are, 48 rows read 10 to 21 of 32, and 31 by chance."""
    config = QWEN3_MOE | {
        "hidden_size": 128,
        "num_hidden_layers": 8,
        "num_experts": 32,
        "num_experts_per_tok": 2,
        "tie_word_embeddings": False,
    }
    network = random_network(config)
    with noted_choices(switches(network.model)) as choices:
        network.model(rows_of(network, 48))
    by_layer = [distinct_experts([choice], 48) for choice in choices]
    assert min(by_layer) > 0.8 * distinct_by_chance(32, 2, 48)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(strategy="prompt-lookup", draft_length=3, ngram=2, forced_acceptance=0.5),
        Settings(strategy="layer-skip", draft_length=3, skipped_mlp=(1,), forced_acceptance=0.5),
        Settings(strategy="canvas", canvas=4),
        Settings(strategy="batch", batch=4),
    ],
    ids=lambda settings: settings.strategy,
)
def test_a_run_of_several_rows_counts_and_its_rounds_are_the_same(
    mixture: Network, settings: Settings
) -> None:
    assert settings.rows == 4
    run = decode(arm(mixture, settings), Start(PROMPT), 12, Pace())
    assert 2.0 <= run.distinct_experts <= 8.0
    again = decode(arm(mixture, settings), Start(PROMPT), 12, Pace())
    assert (run.output, run.accepted, run.proposed) == (
        again.output,
        again.accepted,
        again.proposed,
    )
    assert run.distinct_experts == again.distinct_experts


def test_a_pass_of_one_row_and_a_network_without_experts_count_nothing(mixture: Network) -> None:
    dense = random_network(LLAMA)
    for network, settings in (
        (mixture, Settings(strategy="plain")),
        (dense, Settings(strategy="batch", batch=2)),
    ):
        assert decode(arm(network, settings), Start(PROMPT), 4, Pace()).distinct_experts == 0.0
