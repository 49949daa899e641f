"""The overheads of a pass: planted constants come back from planted timings of whole layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibrate.fit.overheads import PRIOR_HOST_S, fit_overheads, typical_residual_log, unknown_names
from calibrate.fit.pass_timings import pass_timings, probe_cost, products_s, without_overheads
from calibrate.probe_network import MIXTURE, NORMED
from calibrate.samples import Sample, Settings
from model.cost.pipeline import awaited_s, pipelined_s
from model.machine.constant import Origin
from model.machine.kernels.attention import VectorAttention
from model.machine.machine import Machine
from model.machine.overheads import Device, Host, Submission
from model.machine.profile_file import read_profile, write_profile
from model.machine.profile_store import named_profile
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


def sample(probe: str, each: Settings, noise: float, planted: Machine = TRUTH) -> Sample:
    """A probe timed on the planted machine; only a growing context is planned anew."""
    blank = Sample(
        probe=probe, settings=each, seconds=1.0, spread=0.0, repeats=10, at=0.0, doubling=2.0
    )
    mode = blank.text("mode")
    host = planted.host if mode == "growing" else replace(planted.host, reshape_s=0.0)
    cost = probe_cost(blank, replace(planted, host=host))
    busy_s = max(float(cost.device_s), float(cost.submit_s))
    seconds = {
        "build": float(cost.build_s),
        "submit": busy_s,
        "queued": float(cost.device_s),
        "pipelined": busy_s,
        "decode": float(pipelined_s(cost, host.read_s)),
        "awaited": float(awaited_s([cost], host.sync_s)),
        "growing": float(awaited_s([cost], host.sync_s)),
    }[mode]
    return replace(blank, seconds=seconds * noise)


def samples(scatter: float, seed: int = 17, planted: Machine = TRUTH) -> Iterator[Sample]:
    """The probes of a calibration: two widths, two depths, and narrow ones for the host."""
    generator = np.random.default_rng(seed)

    def noise() -> float:
        return float(np.exp(generator.normal(scale=scatter)))

    for form in SUBMISSIONS:
        for hidden, layers in ((2048, 4), (2048, 1), (4096, 2)):
            for rows in (1, 2, 5, 9, 16):
                for mode in ("pipelined", "awaited"):
                    each = settings(hidden, layers, rows, mode, form)
                    yield sample("layers", each, noise(), planted)
        for layers in (4, 24):
            arms = [("submit", rows) for rows in (1, 2, 9)]
            arms += [("build", 1), ("decode", 1), ("awaited", 1), ("growing", 1), ("growing", 2)]
            for mode, rows in arms:
                narrow = settings(128, layers, rows, mode, form, vocab=128)
                yield sample("host", narrow, noise(), planted)


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


COMMITTING = replace(
    TRUTH,
    device=replace(DEVICE, head_norm_s=7e-6),
    host=replace(HOST, build_norm_s=4e-6, submit_norm_s=3e-6, walk_share=0.35),
    kernels_per_commit=50.0,
)
"""A runtime that gathers kernels, walks its graph first and norms queries and keys for a time."""


def normed(probe: str, each: Settings) -> Sample:
    return sample(probe, (("network", NORMED), *each), 1.0, COMMITTING)


def of_commits(planted: Machine = COMMITTING) -> Iterator[Sample]:
    """Deep passes that are waited for, whose device has more to do than their host, or less."""
    for rows in (1, 2, 9):
        for hidden, layers in ((2048, 24), (512, 24)):
            each = settings(hidden, layers, rows, "awaited", "4bit")
            yield sample("layers", each, 1.0, planted)


def of_head_norms() -> Iterator[Sample]:
    for rows in (1, 2, 9):
        yield normed("layers", settings(2048, 4, rows, "queued", "4bit"))
    for mode in ("build", "submit"):
        yield normed("host", settings(128, 4, 1, mode, "4bit", vocab=128))


def test_the_walk_and_the_norms_of_heads_come_back_without_noise() -> None:
    known = replace(bare(), kernels_per_commit=50.0)
    measured = [*samples(0.0, planted=COMMITTING), *of_commits(), *of_head_norms()]
    constants, residual_log = fit_overheads(measured, known, known)
    walk, norm = constants["walk_share"], constants["head_norm_s"]
    assert walk.value == pytest.approx(0.35, rel=0.05)
    assert norm.value == pytest.approx(7e-6, rel=0.05)
    assert (walk.unit, norm.unit) == ("1", "s")
    assert walk.origin is norm.origin is Origin.MEASURED
    assert residual_log < 2e-3


def test_the_walk_is_asked_for_where_a_deep_pass_of_many_commits_was_waited_for() -> None:
    gathering = replace(bare(), kernels_per_commit=50.0)
    deep = list(of_commits())
    assert "walk_share" in unknown_names(deep, gathering)
    assert "walk_share" not in unknown_names(deep, bare())
    shallow = [each for each in samples(0.0) if each.probe == "layers"]
    assert "walk_share" not in unknown_names(shallow, gathering)
    others = [
        sample("layers", settings(2048, 24, 1, "queued", "4bit"), 1.0),
        sample("host", settings(128, 24, 1, "awaited", "4bit", vocab=128), 1.0),
    ]
    assert "walk_share" not in unknown_names(others, gathering)


@pytest.mark.parametrize("slowness", [1.02, 1.1])
def test_deep_passes_that_no_walk_explains_leave_a_share_that_can_be_written(
    slowness: float, tmp_path: Path
) -> None:
    """All of submitting comes before the first kernel, and they take longer still."""
    planted = replace(COMMITTING, host=replace(COMMITTING.host, walk_share=1.0))
    known = replace(bare(), kernels_per_commit=50.0)
    slow = [replace(each, seconds=slowness * each.seconds) for each in of_commits(planted)]
    constants, _ = fit_overheads([*samples(0.0, planted=planted), *slow], known, known)
    walk = constants["walk_share"]
    assert 0.99 < walk.value <= 1.0
    shipped = named_profile("h200-mlx-0.32.4-no-cudnn")
    write_profile(
        replace(shipped, constants={**shipped.constants, "walk_share": walk}),
        tmp_path / "slow.json",
    )
    assert read_profile(tmp_path / "slow.json").constants["walk_share"].value == walk.value


def test_norms_of_heads_are_asked_for_where_layers_with_them_were_timed() -> None:
    layers, host = (
        [each for each in of_head_norms() if each.probe == probe] for probe in ("layers", "host")
    )
    assert "head_norm_s" in unknown_names(layers, bare())
    assert "head_norm_s" not in unknown_names(host, bare())
    assert "submit_norm_s" in unknown_names(host, bare())
    assert "head_norm_s" not in unknown_names(list(samples(0.0)), bare())
    mixed = replace(
        layers[0],
        settings=(("network", MIXTURE), *layers[0].settings[1:], ("num_experts", 8), ("top_k", 2)),
    )
    assert "head_norm_s" not in unknown_names([mixed], bare())


@pytest.mark.parametrize("mode", ["awaited", "pipelined"])
def test_layers_with_norms_that_were_not_timed_on_the_device_alone_tell_nothing_of_them(
    mode: str,
) -> None:
    beside = normed("layers", settings(2048, 4, 1, mode, "4bit"))
    assert "head_norm_s" not in unknown_names([beside], bare())
    queued = next(of_head_norms())
    assert "head_norm_s" in unknown_names([beside, queued], bare())


def test_a_pass_that_stays_at_its_context_is_priced_by_how_its_scores_are_aligned() -> None:
    """Eight rows behind 128 tokens; a growing cache meets all alignments."""
    rule = VectorAttention(most_rows=3, head_dims=(64,), fused_beyond=False)
    mean, best = flat_law(bandwidth=1e8), flat_law(bandwidth=1e9)
    own = replace(TRUTH, vector_attention=rule, unfused_attention=mean, aligned_attention=best)
    kv_s = {
        (mode, rows): float(probe_cost(sample("host", each, 1.0), own).kv_s)
        for mode in ("queued", "awaited", "growing")
        for rows in (7, 8)
        for each in (settings(128, 4, rows, mode, "4bit"),)
    }
    assert kv_s["queued", 8] == kv_s["awaited", 8] == pytest.approx(kv_s["growing", 8] / 10)
    assert kv_s["queued", 7] == kv_s["growing", 7]


def test_what_kernels_alone_told_is_not_fitted_again() -> None:
    """Else a layer's own constants would take up the traffic of its scores."""
    rule = VectorAttention(most_rows=3, head_dims=(64,), fused_beyond=False)
    own = replace(TRUTH, vector_attention=rule, unfused_attention=LAW)
    scored = replace(own, device=replace(DEVICE, score_s=1e-9))
    passes = [sample("layers", settings(128, 4, 8, "queued", "4bit"), 1.0)]
    more_s = float(products_s(passes, scored)[0] - products_s(passes, own)[0])
    costs = [float(probe_cost(passes[0], each).kv_s) for each in (own, scored)]
    assert costs[1] > costs[0]
    assert more_s == pytest.approx(costs[1] - costs[0])
    assert float(np.asarray(without_overheads(scored).device.kernel_s)) == DEVICE.kernel_s


def test_one_disturbed_probe_does_not_rule() -> None:
    measured = list(samples(0.01))
    measured[3] = replace(measured[3], seconds=4 * measured[3].seconds)
    constants, residual_log = fit_overheads(measured, bare(), bare())
    assert constants["layer_s"].value == pytest.approx(DEVICE.layer_s, rel=0.15)
    assert residual_log < 0.03


def test_typical_residual_of_a_normal_scatter_is_its_deviation() -> None:
    scatter = 0.05 * np.random.default_rng(8).standard_normal(20_000)
    assert typical_residual_log(scatter) == pytest.approx(0.05, rel=0.03)
