"""Layer skipping: a draft of the target's own layers, its limits and its memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.forward import forward_pass
from model.errors import InputError
from model.network.sublayers import Half, Sublayer, middle_block, sublayers, without
from model.progress.acceptance import Acceptance
from model.strategies.layer_skip import LayerSkip
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative
from tests.model.machines import FULL, HOST, STATE, block, flat_law, machine, network, small

FLAT = flat_law(bandwidth=1e9)
TILED = flat_law(bandwidth=1e10, flops=1e11, tile_rows=5.0)
TARGET = small("bf16", num_hidden_layers=8)
ALL = frozenset(sublayers(TARGET.architecture))


def skipping(
    fraction: float, draft_length: int, acceptance: float, sequences: int = 1
) -> LayerSkip:
    return LayerSkip(
        skipped=middle_block(TARGET.architecture, fraction),
        draft_length=draft_length,
        acceptance=Acceptance(by_position=(acceptance,)),
        sequences=sequences,
    )


@given(st.integers(min_value=1, max_value=12), st.floats(min_value=0, max_value=1))
def test_skipping_nothing_drafts_with_the_target(k: int, acceptance: float) -> None:
    """The same round as with the target as its own draft, but for the second copy of weights."""
    here = machine(TILED, host=HOST)
    own = Speculative(
        draft=TARGET, draft_length=k, acceptance=Acceptance(by_position=(acceptance,))
    )
    found = skipping(0.0, k, acceptance).round(TARGET, here, 500)
    expected = own.round(TARGET, here, 500)
    for (name, part_s), (other, other_s) in zip(found.parts_s, expected.parts_s, strict=True):
        assert name == other
        assert float(part_s) == pytest.approx(float(other_s), rel=1e-12)
    single = float(forward_pass(TARGET, machine(FLAT), rows=1, context=500).device_s)
    draft_s = dict(skipping(0.0, k, 0.0).round(TARGET, machine(FLAT), 500).parts_s)["draft"]
    assert float(draft_s) == pytest.approx(k * single)


@given(st.sets(st.sampled_from(sorted(ALL)), max_size=15), st.integers(min_value=1, max_value=6))
def test_a_draft_is_never_cheaper_than_the_head_nor_dearer_than_the_target(
    skipped: set[Sublayer], k: int
) -> None:
    here = machine(FLAT)
    strategy = LayerSkip(
        skipped=frozenset(skipped), draft_length=k, acceptance=Acceptance(by_position=(0.0,))
    )
    draft_s = float(dict(strategy.round(TARGET, here, 100).parts_s)["draft"]) / k
    whole_s = float(forward_pass(TARGET, here, rows=1, context=100).device_s)
    assert TARGET.head_bytes / 1e9 <= draft_s * (1 + 1e-12)
    assert draft_s <= whole_s * (1 + 1e-12)


def test_one_draft_token_pays_where_the_closed_form_says() -> None:
    """alpha = (1 - f)(1 - h) + h + s: half the layers, flat rows (s = 0), no context."""
    here = machine(FLAT)
    plain_s = float(Plain().round(TARGET, here, 0).round_s)
    h = TARGET.head_bytes / 1e9 / plain_s
    needed = 0.5 * (1 - h) + h
    for acceptance, sign in ((needed - 1e-6, -1), (needed + 1e-6, 1)):
        strategy = skipping(0.5, 1, acceptance)
        gain = strategy.tokens_per_pass * plain_s - float(strategy.round(TARGET, here, 0).round_s)
        assert gain * sign > 0


def test_weights_are_in_memory_once_and_the_draft_keeps_caches_of_its_own() -> None:
    """4 of 8 layers are drafted with: half the target's cache again, for each of 3 sequences."""
    strategy = skipping(0.5, 2, 0.5, sequences=3)
    assert strategy.residents(TARGET) == ((TARGET, 3),)
    cache_bytes = 3 * 4 * 512 * 1000
    assert strategy.shared_cache_bytes(TARGET, 1000) == cache_bytes
    room_s = dict(strategy.round(TARGET, machine(FLAT), 1000).parts_s)["growth"]
    both_bytes = 3 * cache_bytes
    assert float(room_s) == pytest.approx(1.75 * 2 * both_bytes / 256 / 1e9)


def test_skipping_attention_saves_its_cache() -> None:
    mixers = frozenset(each for each in ALL if each.half is Half.MIXER)
    strategy = LayerSkip(skipped=mixers, draft_length=1, acceptance=Acceptance(by_position=(0.5,)))
    assert strategy.shared_cache_bytes(TARGET, 1000) == 0
    costs = [
        float(dict(strategy.round(TARGET, machine(FLAT), context).parts_s)["draft"])
        for context in (0, 10_000)
    ]
    assert costs[0] == costs[1]


def test_settings_name_what_is_skipped() -> None:
    skipped = frozenset({Sublayer(layer=5, half=Half.MLP), Sublayer(layer=2, half=Half.MIXER)})
    strategy = LayerSkip(skipped=skipped, draft_length=3, acceptance=Acceptance(by_position=(0.5,)))
    assert strategy.settings == {
        "skipped_attention": [2],
        "skipped_mlp": [5],
        "draft_length": 3,
        "acceptance": [0.5],
    }
    assert strategy.draft(TARGET) == without(TARGET, skipped)


def test_a_target_with_states_is_warned_of() -> None:
    hybrid = network(block(STATE), block(FULL), name="hybrid")
    strategy = LayerSkip(
        skipped=frozenset({Sublayer(layer=0, half=Half.MLP)}),
        draft_length=1,
        acceptance=Acceptance(by_position=(0.5,)),
    )
    (line,) = strategy.warnings(hybrid)
    assert line.startswith("hybrid has recurrent layers")


@pytest.mark.parametrize(
    ("skipped", "line"),
    [
        (ALL, "skipping all 16 sublayers of small: leaves nothing to draft with"),
        (
            frozenset({Sublayer(layer=8, half=Half.MLP)}),
            "sublayer mlp of layer 8: is not in small; layers are numbered 0 to 7",
        ),
    ],
)
def test_what_cannot_be_skipped_is_refused(skipped: frozenset[Sublayer], line: str) -> None:
    strategy = LayerSkip(skipped=skipped, draft_length=1, acceptance=Acceptance(by_position=(0.5,)))
    with pytest.raises(InputError, match=f"^{line}"):
        strategy.round(TARGET, machine(FLAT), 0)
