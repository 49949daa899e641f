"""The fit of row laws: planted kernels come back, and noise is not learned by heart."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from calibrate.fit.attention_laws import attention_floors_s, attention_shape, fit_attention
from calibrate.fit.law_fit import fit_law, residuals_log
from calibrate.fit.observations import Observations
from calibrate.samples import Sample
from model.cost.unfused_attention import scores_product
from model.machine.kernels.attention import VectorAttention
from model.machine.profile import ALIGNED, TWO_PASS, UNFUSED
from model.machine.row_law import REFERENCE_DEPTH, Product, Regime, RowLaw, shortened
from model.network.mixer import Attention

ROWS = (*range(1, 21), 24, 32, 48, 64)
SHAPES = ((4096, 4096), (2048, 2048))


def regime(first_row: int, tile_rows: float, **changes: float | bool) -> Regime:
    fields: dict[str, float | bool] = {
        "pads": False,
        "bandwidth_bytes_per_s": 1e11,
        "flops_per_s": 1e12,
        "reread": 0.0,
        "fill_columns": 0.0,
    }
    return Regime(first_row=first_row, tile_rows=tile_rows, **(fields | changes))  # pyright: ignore[reportArgumentType]


def measured(law: RowLaw, *, noise: float, bits: float = 4.5, seed: int = 5) -> Observations:
    """Timings of `law` with multiplicative noise."""
    cells = [(row, depth, columns) for depth, columns in SHAPES for row in ROWS]
    rows, depth, columns = (np.array(values, dtype=float) for values in zip(*cells, strict=True))
    read_bytes = depth * columns * bits / 8
    seconds = np.array(
        [
            float(
                law.time(
                    Product(read_bytes=read_bytes[i], depth=depth[i], columns=columns[i]),
                    int(rows[i]),
                ).total_s
            )
            for i in range(len(rows))
        ]
    )
    scatter = np.random.default_rng(seed).normal(scale=noise, size=len(rows))
    return Observations(
        rows=rows,
        read_bytes=read_bytes,
        depth=depth,
        columns=columns,
        seconds=seconds * np.exp(scatter),
        sigma_log=np.full(len(rows), max(noise, 0.02)),
    )


PLANTED = {
    "MLX on a CPU: one kernel, a row at a time": RowLaw(
        overlap=math.inf,
        rows_measured=64,
        regimes=(regime(1, 1.0, bandwidth_bytes_per_s=1e15, flops_per_s=2e9),),
    ),
    "MLX on M3 since 0.32: tiles of five, then padded tiles of 32": RowLaw(
        overlap=math.inf,
        rows_measured=64,
        regimes=(regime(1, 5.0, reread=1.0), regime(13, 32.0, pads=True, flops_per_s=2.5e12)),
    ),
    "MLX on CUDA: a row at a time, then tiles that fill at 8192 columns": RowLaw(
        overlap=math.inf,
        rows_measured=64,
        regimes=(
            regime(1, 1.0, bandwidth_bytes_per_s=3e12, flops_per_s=3.6e12),
            regime(
                8,
                16.0,
                pads=True,
                flops_per_s=3e13,
                fill_columns=8192.0,
                bandwidth_bytes_per_s=3e12,
            ),
        ),
    ),
    "a flat one": RowLaw(overlap=2.0, rows_measured=64, regimes=(regime(1, math.inf),)),
}


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_planted_laws_are_predicted_back(name: str, noise: float) -> None:
    """The curve comes back at every row that was timed, for both shapes."""
    planted = PLANTED[name]
    law = fit_law(measured(planted, noise=noise))
    rows = np.array(ROWS)
    for depth, columns in SHAPES:
        product = Product(read_bytes=depth * columns * 4.5 / 8, depth=depth, columns=columns)
        truth = np.asarray(planted.time(product, rows).total_s)
        fitted = np.asarray(law.time(product, rows).total_s)
        assert np.max(np.abs(np.log(fitted / truth))) < 0.04


def test_boundaries_are_found_where_they_were_planted() -> None:
    planted = PLANTED["MLX on M3 since 0.32: tiles of five, then padded tiles of 32"]
    law = fit_law(measured(planted, noise=0.005))
    assert [each.first_row for each in law.regimes] == [1, 13]
    wide = law.regimes[0]
    assert wide.tile_rows == 5.0
    assert wide.flops_per_s == pytest.approx(1e12, rel=0.03)
    assert wide.bandwidth_bytes_per_s == pytest.approx(1e11, rel=0.03)


def test_noise_alone_makes_no_regimes() -> None:
    """A per-row law with 3 % scatter stays one regime, whatever the seed."""
    planted = PLANTED["MLX on a CPU: one kernel, a row at a time"]
    for seed in range(3):
        law = fit_law(measured(planted, noise=0.03, seed=seed))
        assert len(law.regimes) == 1
        assert law.regimes[0].tile_rows == 1.0


def test_known_boundaries_are_kept_even_where_the_data_would_not_ask_for_them() -> None:
    planted = PLANTED["a flat one"]
    law = fit_law(measured(planted, noise=0.0), {8: None, 33: None})
    assert 33 not in ROWS
    assert [each.first_row for each in law.regimes] == [1, 8, 33]
    assert np.max(np.abs(residuals_log(law, measured(planted, noise=0.0)))) < 0.02


def test_a_device_that_is_not_filled_shows_in_matrices_that_were_not_timed() -> None:
    """Half as narrow and twice as deep: the time follows the depth, not the weights."""
    planted = PLANTED["MLX on CUDA: a row at a time, then tiles that fill at 8192 columns"]
    law = fit_law(measured(planted, noise=0.005))
    unseen = Product(read_bytes=8192 * 1024 * 4.5 / 8, depth=8192, columns=1024)
    for rows in (8, 12, 16):
        fitted, truth = (float(each.time(unseen, rows).total_s) for each in (law, planted))
        assert fitted == pytest.approx(truth, rel=0.05)


def test_a_kernel_that_no_first_row_was_timed_of_serves_the_first_rows_too() -> None:
    """Batches, of one row each, are priced by what was timed of several rows, if nothing else."""
    seen = measured(PLANTED["a flat one"], noise=0.0)
    late = seen.ordered().part(int(np.searchsorted(seen.ordered().rows, 4)), len(seen.rows))
    law = fit_law(late, {1: None, 4: None})
    assert [each.first_row for each in law.regimes] == [1]


VECTOR = VectorAttention(most_rows=3, head_dims=(64,), fused_beyond=False, one_pass_to_context=1024)


def attention(**changes: int) -> Sample:
    """A probe of attention with five rows, which that kernel does not take."""
    settings = {"query_heads": 8, "kv_heads": 2, "head_dim": 64, "context": 128, "rows": 5}
    return Sample(
        probe="attention",
        settings=tuple((settings | changes).items()),
        seconds=1e-5,
        spread=0.0,
        repeats=5,
        at=0.0,
        doubling=2.0,
    )


@pytest.mark.parametrize(
    ("changes", "shape"),
    [
        ({"contexts": 1}, ALIGNED),
        ({"contexts": 8}, UNFUSED),
        ({"contexts": 1, "context": 4096}, ALIGNED),
        ({}, UNFUSED),  # older samples
        ({"rows": 3}, ""),
        ({"rows": 3, "context": 4096}, TWO_PASS),
        ({"rows": 1, "sequences": 4, "contexts": 8}, UNFUSED),
        ({"rows": 1, "head_dim": 80, "contexts": 8}, UNFUSED),
    ],
)
def test_scores_over_one_aligned_number_of_keys_are_told_from_those_over_several(
    changes: dict[str, int], shape: str
) -> None:
    assert attention_shape(attention(**changes), VECTOR) == shape


def test_without_scores_in_memory_one_law_prices_all_attention() -> None:
    assert attention_shape(attention(context=4096), None) == ""


def test_what_is_left_to_scores_has_one_floor_for_both_alignments() -> None:
    """And what has a kernel that of one pass, however short two passes are; none below a kernel."""
    seconds = {"": 4e-6, TWO_PASS: 3e-6, UNFUSED: 9e-6, ALIGNED: 7e-6}
    groups = {shape: [replace(attention(), seconds=each)] for shape, each in seconds.items()}
    floors = attention_floors_s(groups, 2e-6)
    assert floors == {"": 4e-6, TWO_PASS: 4e-6, UNFUSED: 7e-6, ALIGNED: 7e-6}
    assert set(attention_floors_s(groups, 8e-6).values()) == {8e-6}
    assert set(attention_floors_s({}, 2e-6).values()) == {2e-6}


def test_both_laws_of_scores_are_fitted_where_both_were_timed() -> None:
    """Planted by the score and the row: aligned ones are three times as fast."""
    samples = [
        replace(
            attention(rows=rows, context=context, contexts=contexts),
            seconds=1e-6 + slowness * 8 * context * rows * 1e-10,
        )
        for contexts, slowness in ((1, 1.0), (8, 3.0))
        for context in (128, 1024, 4096, 16384)
        for rows in (4, 5, 8, 16, 32)
    ]
    found, _ = fit_attention(samples, 1e-7, 0.0, 2, VECTOR)
    assert found.keys() == {UNFUSED, ALIGNED}
    product = scores_product(Attention(query_heads=8, kv_heads=2, head_dim=64), 8192, 2, 1)
    mean, best = (
        float(
            law.form.assemble({name: each.value for name, each in law.constants.items()})
            .time(product, 8)
            .total_s
        )
        for law in (found[UNFUSED], found[ALIGNED])
    )
    assert mean / best == pytest.approx(3.0, rel=0.1)


def scores_growing_by(power: float, rows: tuple[int, ...]) -> list[Sample]:
    """Attention whose time grows so with the context, beside a floor of a microsecond."""
    law = RowLaw(overlap=math.inf, rows_measured=32, regimes=(regime(1, 1.0),), depth_power=power)
    mixer = Attention(query_heads=8, kv_heads=2, head_dim=64)
    return [
        replace(
            attention(rows=row, context=context, contexts=8),
            seconds=1e-6 + float(law.time(scores_product(mixer, context, 2, 1), row).total_s),
        )
        for context in (1, 128, 512, 1024, 4096, 8192, 16384)
        for row in rows
    ]


@pytest.mark.parametrize("power", [1.0, 0.8, 0.6])
def test_the_power_by_which_scores_grow_with_the_context_is_found(power: float) -> None:
    found, _ = fit_attention(scores_growing_by(power, (4, 5, 8, 16, 32)), 1e-7, 0.0, 2, VECTOR)
    assert found[UNFUSED].form.depth_power == power


def test_attention_that_one_kernel_does_grows_with_its_context() -> None:
    """Whatever the timings: nothing cuts up a cache for it."""
    found, _ = fit_attention(scores_growing_by(0.6, (1, 2, 3)), 1e-7, 0.0, 2, VECTOR)
    assert {shape: each.form.depth_power for shape, each in found.items()} == {"": 1, TWO_PASS: 1}


def test_a_shortened_product_costs_by_the_power_of_its_depth() -> None:
    """About a depth at which nothing changes, and by reading as by multiplying."""
    for rates in ({"flops_per_s": math.inf}, {"bandwidth_bytes_per_s": math.inf}):
        plain = RowLaw(overlap=math.inf, rows_measured=9, regimes=(regime(1, 1.0, **rates),))
        law = replace(plain, depth_power=0.6)
        for share in (0.25, 1.0, 4.0):
            depth = share * REFERENCE_DEPTH
            product = Product(read_bytes=1e3 * depth, depth=depth, columns=64)
            ratio = float(law.time(product, 4).total_s) / float(plain.time(product, 4).total_s)
            assert ratio == pytest.approx(share**-0.4)
            short = shortened(product, 0.6)
            assert float(plain.time(short, 4).total_s) == float(law.time(product, 4).total_s)
