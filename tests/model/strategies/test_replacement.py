"""Another checkpoint in the target's place: its own plain tokens, alone in memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError
from model.strategies.plain import Plain
from model.strategies.replacement import Replacement
from tests.model.machines import HOST, flat_law, machine, small

FLAT = flat_law(bandwidth=1e9)
BITS = ["2bit", "3bit", "4bit", "6bit", "8bit", "bf16"]
TARGET = small("bf16", num_hidden_layers=8)
formats = st.integers(min_value=0, max_value=len(BITS) - 1)
contexts = st.integers(min_value=0, max_value=20_000)


@given(contexts)
def test_the_target_in_its_own_place_is_plain_decoding(context: int) -> None:
    here = machine(FLAT, host=HOST)
    found = Replacement(other=TARGET).round(TARGET, here, context)
    plain = Plain().round(TARGET, here, context)
    assert found.parts_s == plain.parts_s
    assert (float(found.lower_s), float(found.upper_s)) == (
        float(plain.lower_s),
        float(plain.upper_s),
    )


@given(formats, formats, contexts)
def test_fewer_bits_are_never_slower_where_reading_binds(
    one: int, other: int, context: int
) -> None:
    fewer, more = sorted((one, other))
    here = machine(FLAT)
    times = [
        float(
            Replacement(other=small(BITS[each], num_hidden_layers=8))
            .round(TARGET, here, context)
            .round_s
        )
        for each in (fewer, more)
    ]
    assert times[0] <= times[1]


def test_fewer_bits_buy_nothing_where_arithmetic_binds() -> None:
    """A machine that decodes weights no faster than it would multiply them, as MLX on a CPU."""
    slow = machine(flat_law(bandwidth=1e15, flops=1e9, tile_rows=1.0))
    times = [
        float(Replacement(other=small(name)).round(TARGET, slow, 0).round_s)
        for name in ("4bit", "bf16")
    ]
    assert times[0] == pytest.approx(times[1])


def test_it_takes_the_target_s_place_in_memory() -> None:
    other = small("4bit")
    strategy = Replacement(other=other)
    assert strategy.residents(TARGET) == ((other, 1),)
    assert strategy.settings == {"model": "small", "format": "4bit"}
    assert (strategy.tokens_per_pass, strategy.rows, strategy.batch) == (1.0, 1, 1)


def test_a_context_that_the_other_network_cannot_hold_is_refused() -> None:
    other = small(max_position_embeddings=2048)
    here = machine(FLAT)
    Replacement(other=other).round(TARGET, here, 2048)
    with pytest.raises(InputError, match=r"^context 2049: is beyond the 2048 tokens of small"):
        Replacement(other=other).round(TARGET, here, 2049)
