"""Plans of uniform skipping: each cell is what the strategy itself says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError
from model.network.sublayers import middle_block
from model.planners.layer_skip import plan_layer_skip
from model.progress.acceptance import Acceptance
from model.strategies.layer_skip import LayerSkip
from model.strategies.plain import Plain
from tests.model.machines import HOST, flat_law, machine, small

TARGET = small("bf16", num_hidden_layers=8)
FLAT = machine(flat_law(bandwidth=1e9))
TILED = machine(flat_law(bandwidth=1e10, flops=1e11, tile_rows=5.0), host=HOST)
LINEAR = machine(flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0))
FRACTIONS = (0.0, 0.25, 0.5, 0.75)


def speedup(fraction: float, k: int, acceptance: float, context: float) -> float:
    strategy = LayerSkip(
        skipped=middle_block(TARGET.architecture, fraction),
        draft_length=k,
        acceptance=Acceptance(by_position=(acceptance,)),
    )
    plain_s = float(Plain().round(TARGET, TILED, context).round_s)
    round_s = float(strategy.round(TARGET, TILED, context).round_s)
    return strategy.tokens_per_pass * plain_s / round_s


@given(
    st.integers(0, 20_000),
    st.lists(st.integers(1, 8), min_size=1, max_size=3),
    st.floats(0.0, 1.0),
)
def test_a_cell_says_what_the_strategy_says(context: int, lengths: list[int], known: float) -> None:
    cells = plan_layer_skip(
        TARGET,
        TILED,
        context=context,
        fractions=FRACTIONS,
        draft_lengths=lengths,
        acceptance_at=lambda fraction: known if fraction > 0.3 else None,
    )
    assert [(each.skip_fraction, each.draft_length) for each in cells] == [
        (fraction, length) for fraction in FRACTIONS for length in lengths
    ]
    for cell in cells:
        asked = cell.skip_fraction, cell.draft_length
        assert cell.speedup_at_most == pytest.approx(speedup(*asked, 1.0, context))
        if cell.needed_acceptance is None:
            assert cell.speedup_at_most <= 1.0
        else:
            assert speedup(*asked, cell.needed_acceptance, context) == pytest.approx(1.0)
        if cell.skip_fraction > 0.3:
            assert cell.acceptance == known
            assert cell.speedup == pytest.approx(speedup(*asked, known, context))
        else:
            assert cell.acceptance is None
            assert cell.speedup is None


def test_more_skipping_needs_less() -> None:
    """On a flat machine at no context one token needs (1 - f)(1 - h) + h."""
    cells = plan_layer_skip(TARGET, FLAT, context=0, fractions=FRACTIONS, draft_lengths=(1,))
    plain_s = float(Plain().round(TARGET, FLAT, 0).round_s)
    h = TARGET.head_bytes / 1e9 / plain_s
    for cell in cells:
        expected = (1 - cell.skip_fraction) * (1 - h) + h
        if cell.skip_fraction == 0.0:
            # The draft is the target: a tie at best, whatever the last bit of it says.
            assert cell.speedup_at_most == pytest.approx(1.0)
        else:
            assert cell.needed_acceptance == pytest.approx(expected)


def test_where_every_row_costs_a_pass_no_acceptance_wins() -> None:
    cells = plan_layer_skip(TARGET, LINEAR, context=0, fractions=FRACTIONS, draft_lengths=(1, 4))
    assert all(cell.needed_acceptance is None for cell in cells)
    assert all(cell.speedup_at_most < 1.0 for cell in cells)


@pytest.mark.parametrize(
    ("fractions", "lengths", "line"),
    [
        ((0.5, 0.9), (1,), "^skip fraction 0.9: leaves 1 of 8 layers"),
        ((1.2,), (1,), "^skip fraction 1.2: would leave no layer"),
        ((0.5,), (1, 0), "^draft length 0: is not a length a round can have"),
    ],
)
def test_what_cannot_be_is_refused(
    fractions: tuple[float, ...], lengths: tuple[int, ...], line: str
) -> None:
    with pytest.raises(InputError, match=line):
        plan_layer_skip(TARGET, FLAT, context=0, fractions=fractions, draft_lengths=lengths)
