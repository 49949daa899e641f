"""The sublayer knapsack against every subset, and its frontier."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError
from model.network.sublayers import Half, Sublayer
from model.planners.sublayers import Skippable, best_sublayers, frontier

# Whole picoseconds and few of them, so that ties between sets are common.
candidates = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from([0.0, 0.3, 0.5, 0.8, 0.9, 0.97, 1.0])),
    min_size=1,
    max_size=10,
).map(
    lambda drawn: [
        Skippable(Sublayer(layer=index, half=Half.MLP), 1e-6 * saved, factor)
        for index, (saved, factor) in enumerate(drawn)
    ]
)


def every_set(found: list[Skippable]) -> list[tuple[Skippable, ...]]:
    return [each for size in range(len(found) + 1) for each in combinations(found, size)]


def value(chosen: tuple[Skippable, ...], k: int, whole_s: float, base: float) -> float:
    """Tokens per second of a set, from the definition: 1 + a + ... + a^k over what remains."""
    acceptance = base * math.prod(each.acceptance_factor for each in chosen)
    tokens = sum(acceptance**j for j in range(k + 1))
    return tokens / (whole_s - k * sum(each.saved_s for each in chosen))


@given(
    candidates,
    st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True),
    st.floats(1e-6, 1e-3),
    st.sampled_from([1.0, 0.95]),
)
def test_no_subset_does_better(
    found: list[Skippable], lengths: list[int], rest_s: float, base: float
) -> None:
    """Of those that leave an acceptance at all: at 0 no draft is worth its time."""
    most_s = sum(each.saved_s for each in found)
    round_s = {k: k * most_s + rest_s for k in lengths}
    plan = best_sublayers(found, round_s=round_s, plain_s=1e-3, base_acceptance=base)
    possible = every_set([each for each in found if each.acceptance_factor > 0.0])
    best = max(value(chosen, k, round_s[k], base) for chosen in possible for k in lengths)
    assert plan.tokens_per_s == pytest.approx(best, rel=1e-9)
    # And the plan is the set it says it is.
    chosen = tuple(each for each in found if each.sublayer in plan.skipped)
    assert len(chosen) == len(plan.skipped)
    again = value(chosen, plan.draft_length, round_s[plan.draft_length], base)
    assert plan.tokens_per_s == pytest.approx(again, rel=1e-9)
    factors = math.prod(each.acceptance_factor for each in chosen)
    assert plan.acceptance == pytest.approx(base * factors)


@given(candidates)
def test_the_frontier_is_every_set_that_none_beats(found: list[Skippable]) -> None:
    """Compared as pairs of whole microseconds saved and loss."""
    pairs = {
        (
            round(1e6 * sum(each.saved_s for each in chosen)),
            round(-sum(math.log(each.acceptance_factor) for each in chosen), 9),
        )
        for chosen in every_set([each for each in found if each.acceptance_factor > 0.0])
    }
    unbeaten = {
        (saved, loss)
        for saved, loss in pairs
        if not any(
            other[0] >= saved and other[1] <= loss and other != (saved, loss) for other in pairs
        )
    }
    kept = frontier(found)
    told = {(round(each.saved_ps * 1e-6), round(each.loss, 9)) for each in kept}
    assert unbeaten <= told
    # Two sums of the same losses may differ in the last bit: nothing else may be left over.
    assert all(any(loss == other for _, other in unbeaten) for _, loss in told - unbeaten)
    assert [each.saved_ps for each in kept] == sorted(each.saved_ps for each in kept)
    for each in kept:
        chosen = [found[index] for index in each.chosen]
        assert len(set(each.chosen)) == len(each.chosen)
        assert sum(round(one.saved_s * 1e12) for one in chosen) == each.saved_ps


def test_equal_layers_keep_the_frontier_small() -> None:
    """64 layers of two kinds: at most 33 x 33 different sums, never 2^64 sets."""
    two_kinds = [
        Skippable(Sublayer(layer=index, half=half), saved_s, factor)
        for index in range(32)
        for half, saved_s, factor in ((Half.MIXER, 1e-4, 0.98), (Half.MLP, 3e-4, 0.95))
    ]
    assert len(frontier(two_kinds)) <= 33 * 33


def test_no_length_and_times_of_another_machine_are_refused() -> None:
    one = [Skippable(Sublayer(layer=0, half=Half.MLP), 1e-3, 0.9)]
    with pytest.raises(InputError, match=r"^draft lengths: are none; give one or more$"):
        best_sublayers(one, round_s={}, plain_s=1e-3)
    line = "^2 drafts that save 0.001 s each: are longer than their round of 0.002 s; "
    with pytest.raises(InputError, match=line):
        best_sublayers(one, round_s={2: 2e-3}, plain_s=1e-3)


def test_a_plan_is_made_while_a_person_waits() -> None:
    """64 sublayers with a loss each of its own: a frontier of hundreds, not of 2^64."""
    generator = np.random.default_rng(0)
    found = [
        Skippable(Sublayer(layer=index, half=half), saved_s, float(factor))
        for index in range(32)
        for half, saved_s in ((Half.MIXER, 1e-4), (Half.MLP, 3e-4))
        for factor in [generator.uniform(0.9, 1.0)]
    ]
    assert len(frontier(found)) <= 32 + 3 * 32 + 1
