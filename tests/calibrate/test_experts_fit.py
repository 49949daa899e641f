"""The law of gathered experts recovers what chains of layers were made of."""

from __future__ import annotations

import pytest

from calibrate.fit.experts import SORTED_PAIRS, fit_experts
from calibrate.samples import Sample
from model.cost.moe import distinct_by_chance

KERNEL_S = 2e-6
LAYER_S = 4e-5
TOKENS = (1, 2, 4, 8, 16, 32, 64, 128)
SHAPES = ((2048, 768, 128, 8), (2048, 2048, 32, 4))


def chain(format_name: str, seconds: float, shape: tuple[int, ...], tokens: int) -> Sample:
    hidden, intermediate, experts, chosen = shape
    return Sample(
        probe="experts",
        settings=(
            ("format", format_name),
            ("hidden", hidden),
            ("intermediate", intermediate),
            ("num_experts", experts),
            ("top_k", chosen),
            ("tokens", tokens),
        ),
        seconds=seconds,
        spread=0.01,
        repeats=4,
        at=0.0,
        doubling=2.0,
    )


def pairs_alone(shape: tuple[int, ...], tokens: int) -> float:
    hidden, intermediate, _, chosen = shape
    return LAYER_S + tokens * chosen * 6.0 * hidden * intermediate / 5e12


def pairs_together(shape: tuple[int, ...], tokens: int) -> float:
    """Alone up to 63 pairs, then an expert is read once for all of its pairs, and slowly."""
    hidden, intermediate, experts, chosen = shape
    if tokens * chosen < SORTED_PAIRS:
        return pairs_alone(shape, tokens)
    read_bytes = distinct_by_chance(experts, chosen, tokens) * 6.0 * hidden * intermediate
    return float(LAYER_S + read_bytes / 6e11)


def test_without_a_probe_there_is_no_law() -> None:
    assert fit_experts([], KERNEL_S, 0.0) == ([], {})


def test_planted_rates_are_found() -> None:
    samples = [
        chain(name, law(shape, tokens), shape, tokens)
        for name, law in (("4bit", pairs_alone), ("bf16", pairs_together))
        for shape in SHAPES
        for tokens in TOKENS
    ]
    laws, constants = fit_experts(samples, KERNEL_S, 0.0)
    alone, together = laws
    assert [each.first_row for each in alone.form.regimes] == [1]
    assert [each.first_row for each in together.form.regimes] == [1, SORTED_PAIRS]
    found = alone.constants | together.constants
    assert {name: constant.value for name, constant in found.items()} == pytest.approx(
        {
            "4bit.expert.1.flops_per_s": 5e12,
            "bf16.expert.1.flops_per_s": 5e12,
            "bf16.expert.64.bandwidth_bytes_per_s": 6e11,
        },
        rel=1e-3,
    )
    # Two products of the layer are priced as kernels elsewhere.
    assert constants["experts_layer_s"].value == pytest.approx(LAYER_S - 2 * KERNEL_S, rel=1e-3)
    assert all(len(constant.draws) == 100 for constant in found.values())
