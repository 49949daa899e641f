"""The overheads of a pass: planted constants come back from planted timings of whole layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from calibrate.fit.overheads import PRIOR_HOST_S, fit_overheads, typical_residual_log, unknown_names
from calibrate.fit.pass_timings import pass_timings, probe_cost
from calibrate.samples import Sample, Settings
from model.cost.pipeline import awaited_s, pipelined_s
from model.machine.constant import Origin
from model.machine.machine import Machine
from model.machine.overheads import Device, Host, Submission
from tests.model.machines import flat_law, machine

DEVICE = Device(
    kernel_s=2e-6,
    layer_s=60e-6,
    more_rows_layer_s=20e-6,
    element_s=5e-10,
    pass_s=90e-6,
    logit_s=2e-10,
)
HOST = Host(
    build_layer_s=30e-6,
    build_pass_s=80e-6,
    submit_layer_s=120e-6,
    submit_pass_s=50e-6,
    sync_s=200e-6,
    reshape_s=5e-3,
    read_s=150e-6,
    submit_more_rows_layer_s=10e-6,
)
SUBMISSIONS = {
    "4bit": Submission(one_row_s=2e-6, more_rows_s=3e-6),
    "bf16": Submission(one_row_s=4e-6, more_rows_s=25e-6),
}
LAW = flat_law(bandwidth=4e11, flops=4e12, tile_rows=1.0)
TRUTH = machine(LAW, device=DEVICE, host=HOST, submissions=SUBMISSIONS)
CANDIDATE_NAMES = (
    "layer_s",
    "more_rows_layer_s",
    "build_layer_s",
    "submit_layer_s",
    "sync_s",
    "reshape_s",
    "bf16.submit_more_rows_s",
)
"""What these probes see well."""


def settings(
    hidden: int, layers: int, rows: int, mode: str, form: str, vocab: int = 32_000
) -> Settings:
    return (
        ("hidden", hidden),
        ("intermediate", 3 * hidden),
        ("query_heads", hidden // 64),
        ("kv_heads", max(hidden // 256, 1)),
        ("head_dim", 64),
        ("vocab", vocab),
        ("layers", layers),
        ("format", form),
        ("rows", rows),
        ("context", 128),
        ("mode", mode),
    )


def sample(probe: str, each: Settings, noise: float) -> Sample:
    """A probe timed on the planted machine; only a growing context is planned anew."""
    blank = Sample(
        probe=probe, settings=each, seconds=1.0, spread=0.0, repeats=10, at=0.0, doubling=2.0
    )
    mode = blank.text("mode")
    host = HOST if mode == "growing" else replace(HOST, reshape_s=0.0)
    cost = probe_cost(blank, replace(TRUTH, host=host))
    busy_s = max(float(cost.device_s), float(cost.submit_s))
    seconds = {
        "build": float(cost.build_s),
        "submit": busy_s,
        "queued": float(cost.device_s),
        "pipelined": busy_s,
        "decode": float(pipelined_s(cost, HOST.read_s)),
        "awaited": float(awaited_s([cost], HOST.sync_s)),
        "growing": float(awaited_s([cost], HOST.sync_s)),
    }[mode]
    return replace(blank, seconds=seconds * noise)


def samples(scatter: float, seed: int = 17) -> Iterator[Sample]:
    """The probes of a calibration: two widths, two depths, and narrow ones for the host."""
    generator = np.random.default_rng(seed)

    def noise() -> float:
        return float(np.exp(generator.normal(scale=scatter)))

    for form in SUBMISSIONS:
        for hidden, layers in ((2048, 4), (2048, 1), (4096, 2)):
            for rows in (1, 2, 5, 9, 16):
                for mode in ("pipelined", "awaited"):
                    yield sample("layers", settings(hidden, layers, rows, mode, form), noise())
        for layers in (4, 24):
            arms = [("submit", rows) for rows in (1, 2, 9)]
            arms += [("build", 1), ("decode", 1), ("awaited", 1), ("growing", 1), ("growing", 2)]
            for mode, rows in arms:
                narrow = settings(128, layers, rows, mode, form, vocab=128)
                yield sample("host", narrow, noise())


def bare() -> Machine:
    """What is known before: the laws and the floor of a kernel."""
    nothing = dict.fromkeys(Device.__slots__, 0.0) | {"kernel_s": DEVICE.kernel_s}
    return machine(LAW, device=Device(**nothing))


def truth() -> dict[str, float]:
    planted = {
        name: getattr(source, name) for source in (DEVICE, HOST) for name in source.__slots__
    }
    for form, submission in SUBMISSIONS.items():
        planted[f"{form}.submit_one_row_s"] = submission.one_row_s
        planted[f"{form}.submit_more_rows_s"] = submission.more_rows_s
    return planted


def test_planted_overheads_come_back_without_noise() -> None:
    constants, residual_log = fit_overheads(list(samples(0.0)), bare(), bare())
    for name in CANDIDATE_NAMES:
        assert constants[name].value == pytest.approx(truth()[name], rel=0.05), name
    assert residual_log < 2e-3


def test_with_noise_whole_passes_are_still_predicted() -> None:
    measured = list(samples(0.03))
    constants, residual_log = fit_overheads(measured, bare(), bare())
    assert residual_log == pytest.approx(0.03, rel=0.4)
    names = unknown_names(measured, bare())
    values = np.array([constants[name].value for name in names])
    predicted = pass_timings(measured, names, bare()).predict_s(values)
    undisturbed = np.array([each.seconds for each in samples(0.0)])
    assert np.median(np.abs(np.log(predicted / undisturbed))) < 0.01


def test_error_bars_hold_the_truth_about_as_often_as_they_should() -> None:
    """Two standard errors of draws, on a log scale, hold 95 %: of 136 constants 124 to 135."""
    inside: list[bool] = []
    for seed in range(8):
        measured = list(samples(0.03, seed))
        constants, _ = fit_overheads(measured, bare(), bare())
        inside += [
            abs(np.log(truth()[name] / constants[name].value))
            < 2 * np.std(np.log(constants[name].draws))
            for name in unknown_names(measured, bare())
        ]
    assert 0.91 < np.mean(inside) < 1.0


def test_what_no_probe_sees_is_labelled_a_prior() -> None:
    """Without probes of a new context and of a pipelined loop two constants stay unseen."""
    seen, _ = fit_overheads(list(samples(0.01)), bare(), bare())
    assert {seen[name].origin for name in (*CANDIDATE_NAMES, "read_s")} == {Origin.MEASURED}
    still = [each for each in samples(0.01) if each.text("mode") not in ("growing", "decode")]
    constants, _ = fit_overheads(still, bare(), bare())
    assert constants["reshape_s"].origin is constants["read_s"].origin is Origin.PRIOR
    assert constants["reshape_s"].value == pytest.approx(PRIOR_HOST_S["reshape_s"], rel=1e-3)
    for name in ("layer_s", "build_layer_s", "submit_layer_s", "sync_s"):
        assert constants[name].origin is Origin.MEASURED, name


def test_one_disturbed_probe_does_not_rule() -> None:
    measured = list(samples(0.01))
    measured[3] = replace(measured[3], seconds=4 * measured[3].seconds)
    constants, residual_log = fit_overheads(measured, bare(), bare())
    assert constants["layer_s"].value == pytest.approx(DEVICE.layer_s, rel=0.15)
    assert residual_log < 0.03


def test_typical_residual_of_a_normal_scatter_is_its_deviation() -> None:
    scatter = 0.05 * np.random.default_rng(8).standard_normal(20_000)
    assert typical_residual_log(scatter) == pytest.approx(0.05, rel=0.03)
