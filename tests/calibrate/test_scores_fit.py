"""The traffic of scores: a planted one is found beside whatever the products take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrate.fit.attention_laws import fit_attention
from calibrate.fit.scores import score_constant, scores_of
from calibrate.samples import Sample
from model.machine.constant import Constant
from model.machine.profile import ALIGNED, SCORE, UNFUSED
from tests.calibrate.test_law_fit import VECTOR, attention

TILE_ROWS = 64
SCORE_S = 4e-12
ROWS = (4, 8, 9, 16, 32)


def timings(score_s: float, noise: float = 0.0, rows: tuple[int, ...] = ROWS) -> list[Sample]:
    """Products that take any time at each context and head count, the same for all rows."""
    generator = np.random.default_rng(5)
    found: list[Sample] = []
    for heads in (8, 16, 32):
        for context in (1024, 4096, 16_384):
            products_s = float(generator.uniform(2e-5, 2e-4))
            for row in rows:
                sample = attention(query_heads=heads, context=context, rows=row, contexts=1)
                whole_s = products_s + score_s * scores_of(sample)
                factor = float(np.exp(noise * generator.standard_normal()))
                found.append(replace(sample, seconds=whole_s * factor))
    return found


def found(samples: list[Sample]) -> Constant | None:
    return score_constant(samples, np.full(len(samples), 0.02), TILE_ROWS)


def test_a_probe_has_a_score_for_each_row_head_and_key() -> None:
    assert scores_of(attention(query_heads=8, context=1024, rows=5)) == 8 * 1024 * 5
    assert scores_of(attention(context=128, rows=1, sequences=4)) == 8 * 128 * 4


def test_the_planted_traffic_is_found_whatever_the_products_take() -> None:
    constant = found(timings(SCORE_S))
    assert constant is not None
    assert constant.value == pytest.approx(SCORE_S, rel=1e-9)


def test_its_uncertainty_is_that_of_the_scatter() -> None:
    constant = found(timings(SCORE_S, noise=0.04))
    assert constant is not None
    assert 0.0 < constant.stderr < 0.5 * SCORE_S
    assert abs(constant.value - SCORE_S) < 3.0 * constant.stderr
    assert float(np.std(constant.draws)) == pytest.approx(constant.stderr, rel=0.3)


def test_nothing_is_told_by_one_number_of_rows_by_several_tiles_or_by_less_time_for_more() -> None:
    assert found(timings(SCORE_S, rows=(8,))) is None
    assert found(timings(SCORE_S, rows=(65, 80, 128, 256))) is None
    assert found(timings(-1e-14)) is None
    assert found([]) is None
    uneven = timings(SCORE_S, noise=0.1, rows=(7, 7, 7))
    assert score_constant(uneven, np.linspace(0.01, 0.1, len(uneven)), TILE_ROWS) is None


def test_sequences_side_by_side_are_compared_among_themselves() -> None:
    """A batch of two has products of its own, of which a row of one sequence tells nothing."""
    alone = timings(SCORE_S)
    batches = [
        replace(each, settings=(*each.settings, ("sequences", 2)), seconds=each.seconds * 2)
        for each in alone
    ]
    constant = found([*alone, *batches])
    assert constant is not None
    assert constant.value == pytest.approx(SCORE_S, rel=1e-9)


def test_the_laws_are_of_what_is_left() -> None:
    """Of products by the tile alone: as long for one row of it as for all."""
    vector = replace(VECTOR, beyond_tile_rows=float(TILE_ROWS))
    samples = [
        replace(
            attention(context=context, rows=rows, contexts=contexts),
            seconds=5e-6 + 8 * context * (contexts * 2e-10 + SCORE_S * rows),
        )
        for contexts in (1, 8)
        for context in (128, 1024, 4096, 16_384)
        for rows in ROWS
    ]
    laws, constants = fit_attention(samples, 1e-7, 0.0, 2, vector)
    assert laws.keys() == {UNFUSED, ALIGNED}
    assert constants[SCORE].value == pytest.approx(SCORE_S, rel=0.05)
    assert fit_attention(samples, 1e-7, 0.0, 2, None)[1] == {}
