"""Networks without some of their sublayers: what remains, what it costs, what cannot be skipped."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.forward import forward_pass
from model.errors import InputError
from model.network.checkpoint import Overrides
from model.network.sublayers import Half, Sublayer, lent_caches, middle_block, sublayers, without
from model.network.weight_format import weight_format
from tests.model.machines import (
    FULL,
    NO_DEVICE,
    STATE,
    WINDOWED,
    block,
    experts_of,
    flat_law,
    machine,
    network,
    small_architecture,
)

SIX = network(
    block(FULL),
    block(FULL, experts_of(num_experts=8, top_k=2)),
    block(STATE),
    block(FULL),
    block(None),
    block(FULL),
)
ALL = sublayers(SIX.architecture)
skippable = st.frozensets(st.sampled_from(ALL), max_size=len(ALL) - 1)


def test_sublayers_stand_in_order_of_execution_and_only_where_there_is_something() -> None:
    assert len(ALL) == 11
    assert ALL[:3] == (
        Sublayer(layer=0, half=Half.MIXER),
        Sublayer(layer=0, half=Half.MLP),
        Sublayer(layer=1, half=Half.MIXER),
    )
    assert Sublayer(layer=4, half=Half.MIXER) not in ALL


@pytest.mark.parametrize(
    ("fraction", "skipped"),
    [(0.0, []), (0.25, [3, 4]), (0.5, [2, 3, 4, 5]), (0.75, [1, 2, 3, 4, 5, 6]), (0.05, [])],
)
def test_a_run_about_the_middle(fraction: float, skipped: list[int]) -> None:
    eight = small_architecture(num_hidden_layers=8)
    found = middle_block(eight, fraction)
    assert sorted({each.layer for each in found}) == skipped
    assert len(found) == 2 * len(skipped)


@pytest.mark.parametrize(
    ("fraction", "line"),
    [
        (1.0, "skip fraction 1: would leave no layer to draft with; "),
        (-0.1, "skip fraction -0.1: is no share of them; "),
        (
            0.9,
            "skip fraction 0.9: leaves 1 of 8 layers, the first and last have to stay; "
            "give at most 0.75",
        ),
    ],
)
def test_a_fraction_that_cannot_be_is_refused(fraction: float, line: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(line)}"):
        middle_block(small_architecture(num_hidden_layers=8), fraction)


def test_skipping_nothing_is_the_network_itself_but_for_its_name() -> None:
    here = machine(flat_law(bandwidth=1e9, flops=1e12))
    same = without(SIX, frozenset[Sublayer]())
    assert same.architecture.layers == SIX.architecture.layers
    for rows in (1, 3):
        costs = [forward_pass(each, here, rows=rows, context=99) for each in (SIX, same)]
        assert float(costs[0].device_s) == float(costs[1].device_s)


def test_skipping_everything_is_refused() -> None:
    line = "skipping all 11 sublayers of network: leaves nothing to draft with; keep at least one"
    with pytest.raises(InputError, match=f"^{re.escape(line)}$"):
        without(SIX, frozenset(ALL))


@pytest.mark.parametrize(
    "unknown", [Sublayer(layer=4, half=Half.MIXER), Sublayer(layer=6, half=Half.MLP)]
)
def test_a_sublayer_that_the_network_does_not_have_is_refused(unknown: Sublayer) -> None:
    line = (
        f"sublayer {unknown.half} of layer {unknown.layer}: is not in network; "
        "layers are numbered 0 to 5"
    )
    with pytest.raises(InputError, match=f"^{re.escape(line)}$"):
        without(SIX, frozenset({unknown}))


@given(skippable)
def test_what_remains_reads_what_was_not_skipped_and_the_head(skipped: frozenset[Sublayer]) -> None:
    rest = without(SIX, skipped)
    assert set(sublayers(rest.architecture)) == set(ALL) - skipped
    assert rest.architecture.blocks == SIX.architecture.blocks - 0.5 * len(skipped)
    assert rest.head_bytes == SIX.head_bytes
    lost = sum(
        without(SIX, frozenset({each})).weight_bytes_per_token - SIX.weight_bytes_per_token
        for each in skipped
    )
    assert rest.weight_bytes_per_token == SIX.weight_bytes_per_token + lost
    assert rest.weight_bytes_per_token >= SIX.head_bytes


@given(skippable, skippable, st.integers(min_value=1, max_value=8))
def test_skipping_more_is_never_slower(
    some: frozenset[Sublayer], others: frozenset[Sublayer], rows: int
) -> None:
    more = some | others
    if more == frozenset(ALL):
        return
    device = replace(NO_DEVICE, layer_s=1e-5, kernel_s=1e-6)
    here = machine(flat_law(bandwidth=1e9, flops=1e12, tile_rows=1.0), device=device)
    times = [
        float(forward_pass(without(SIX, each), here, rows=rows, context=500).device_s)
        for each in (some, more)
    ]
    assert times[1] <= times[0] * (1 + 1e-12)


def test_only_caches_of_mixers_that_run_are_kept() -> None:
    mlps = frozenset(each for each in ALL if each.half is Half.MLP)
    mixers = frozenset(each for each in ALL if each.half is Half.MIXER)
    assert without(SIX, mlps).kv_cache_bytes(100) == SIX.kv_cache_bytes(100)
    assert without(SIX, mixers).kv_cache_bytes(100) == 0


def test_layers_keep_their_numbers_and_so_their_formats() -> None:
    """Layer 3 has 8-bit projections; skipping layers before it must not move them."""
    path = "model.layers.3.q_proj"
    mixed = replace(
        network(*SIX.architecture.layers, format_name="4bit"),
        overrides=Overrides({path: weight_format("8bit")}),
    )
    first = frozenset(each for each in ALL if each.layer in (0, 1, 2))
    assert without(mixed, first).layer_formats(3)["q_proj"].name == "8bit"
    assert without(mixed, first).layer_formats(5)["q_proj"].name == "4bit"


def test_a_cache_that_later_layers_read_cannot_be_skipped() -> None:
    """Borrowers read the last cache of their own kind of window, so that one stays."""
    borrowers = replace(FULL, owns_cache=False), replace(WINDOWED, owns_cache=False)
    owners = block(FULL), block(WINDOWED), block(FULL), block(WINDOWED)
    lending = network(*owners, *(block(each) for each in borrowers), name="lending")
    lenders = [Sublayer(layer=index, half=Half.MIXER) for index in (2, 3)]
    assert lent_caches(lending.architecture) == frozenset(lenders)
    assert lent_caches(SIX.architecture) == frozenset()
    line = (
        "attention of layer 2: keeps a cache that later layers of lending read; "
        "leave it in the draft"
    )
    with pytest.raises(InputError, match=f"^{re.escape(line)}$"):
        without(lending, frozenset(lenders))
    others = frozenset(sublayers(lending.architecture)) - frozenset(lenders)
    assert len(sublayers(without(lending, others).architecture)) == 2
