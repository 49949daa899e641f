"""Residuals are of the equations that were fitted, sample by sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tokroof
from calibrate.commands.own_samples import WORST, worst_text
from calibrate.doubts import warnings_of
from calibrate.fit.attention_laws import attention_shape
from calibrate.fit.calibration import stored_sample
from calibrate.fit.overheads import WHOLE, typical_residual_log
from calibrate.fit.residuals import Residual, residuals
from calibrate.samples import REFERENCE, Sample
from model.machine.profile import TWO_PASS, Profile
from model.machine.profile_store import named_profile


@pytest.fixture(scope="module")
def profile() -> Profile:
    return named_profile("h200-mlx-0.32.4")


@pytest.fixture(scope="module")
def samples(profile: Profile) -> tuple[Sample, ...]:
    return tuple(stored_sample(each, "here") for each in profile.samples)


def test_passes_scatter_as_the_fit_says(profile: Profile, samples: tuple[Sample, ...]) -> None:
    waited = [each for each in samples if dict(each.settings).get("mode") in WHOLE]
    left_log = np.log([1.0 + each.error for each in residuals(profile, waited)])
    assert len(left_log) == len(waited)
    assert typical_residual_log(left_log) == pytest.approx(profile.header.residual_log, rel=1e-6)


def test_a_slower_sample_has_that_much_more_residual(
    profile: Profile, samples: tuple[Sample, ...]
) -> None:
    layers = next(sample for sample in samples if sample.probe == "layers")
    [once] = residuals(profile, [layers])
    [twice] = residuals(profile, [replace(layers, seconds=2.0 * layers.seconds)])
    assert twice.predicted_s == once.predicted_s
    assert 1.0 + once.error == pytest.approx(2.0 * (1.0 + twice.error))


def test_a_growing_context_alone_pays_for_new_shapes(
    profile: Profile, samples: tuple[Sample, ...]
) -> None:
    awaited = [each for each in samples if ("mode", "awaited") in each.settings]
    dearer: list[float] = []
    for sample in awaited:
        settings = tuple((name, "growing" if name == "mode" else x) for name, x in sample.settings)
        [still] = residuals(profile, [sample])
        [grown] = residuals(profile, [replace(sample, settings=settings)])
        dearer.append(grown.predicted_s - still.predicted_s)
    assert min(dearer) >= 0.0
    assert max(dearer) == pytest.approx(profile.machine.host.reshape_s)


def test_what_was_never_fitted_has_no_residual(
    profile: Profile, samples: tuple[Sample, ...]
) -> None:
    probes = {each.probe for each in residuals(profile, samples)}
    assert probes == {"linear", "attention", "layers", "host"}
    other = [each for each in samples if each.probe == "linear"][:1]
    renamed = replace(other[0], settings=(("format", "6bit"), *other[0].settings[1:]))
    assert residuals(profile, [renamed]) == ()


def test_two_passes_alone_are_net_of_a_bare_kernel() -> None:
    """Their floor is that of attention in one pass, of which there is none here."""
    own = named_profile("h200-mlx-0.32.4-no-cudnn")
    vector = own.machine.vector_attention
    kernel_s = float(np.asarray(own.machine.device.kernel_s))
    attention = [
        sample
        for sample in (stored_sample(each, "here") for each in own.samples)
        if sample.probe == "attention" and attention_shape(sample, vector) == TWO_PASS
    ]
    found = residuals(own, attention)
    assert len(found) == len(attention) > 10
    for residual, sample in zip(found, attention, strict=True):
        assert residual.measured_s == pytest.approx(sample.seconds - kernel_s)


def test_text_has_the_summary_first_and_the_worst_samples_alone(
    capsys: pytest.CaptureFixture[str], profile: Profile, samples: tuple[Sample, ...]
) -> None:
    assert tokroof.main(["calibrate", "--residuals", profile.header.name]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = residuals(profile, samples)
    assert lines[0].startswith("attention: half of 160 samples within ")
    assert lines[4].startswith("drifted by ")
    errors = [float(line.split()[-1]) for line in lines[7:-1]]
    ratios = [abs(np.log(1.0 + each / 100.0)) for each in errors]
    assert len(errors) == WORST
    assert ratios == sorted(ratios, reverse=True)
    telling = [each for each in found if each.apart_s <= each.measured_s]
    assert len(telling) < len(found)
    others = sorted((abs(np.log(1.0 + each.error)) for each in telling), reverse=True)[WORST:]
    assert min(ratios) >= max(others) - 1e-2  # printed to 0.1 %
    more = f"{len(found) - WORST} more are nearer or mostly priced apart: --json has all"
    assert (
        lines[-1] == f"net of what is priced apart: the floor of kernels, scores in memory; {more}"
    )


def test_few_samples_are_all_shown(profile: Profile, samples: tuple[Sample, ...]) -> None:
    few = residuals(profile, [each for each in samples if each.probe == "layers"][:3])
    assert len(worst_text(few).splitlines()) == 1 + 3 + 1


def test_what_is_mostly_priced_apart_is_not_among_the_worst() -> None:
    """Both are missed by half; of the one 2 us are left of 10, of the other 8."""
    floored = Residual(
        probe="attention",
        settings="rows=1",
        rows=1,
        measured_s=2e-6,
        predicted_s=1e-6,
        apart_s=8e-6,
    )
    told = replace(floored, settings="rows=9", measured_s=8e-6, predicted_s=4e-6, apart_s=2e-6)
    titles, row, end = worst_text([floored, told]).splitlines()
    assert titles.split("  ")[-4:] == ["apart us", "net us", "predicted us", "error %"]
    assert row.split() == ["attention", "rows=9", "2", "8", "4", "-50.0"]
    assert "1 more are nearer or mostly priced apart" in end


def test_net_and_floor_are_what_was_timed(profile: Profile, samples: tuple[Sample, ...]) -> None:
    timed = [each for each in samples if each.probe == "linear"][:1]
    [found] = residuals(profile, timed)
    assert found.apart_s == pytest.approx(float(np.asarray(profile.machine.device.kernel_s)))
    assert found.measured_s + found.apart_s == pytest.approx(timed[0].seconds)


def test_a_quiet_machine_raises_no_doubt() -> None:
    quiet = Sample(
        probe=REFERENCE, settings=(), seconds=1e-5, spread=0.0, repeats=5, at=0.0, doubling=2.0
    )
    assert list(warnings_of([quiet, replace(quiet, seconds=1.05e-5)])) == []
    [drifted] = warnings_of([quiet, replace(quiet, seconds=1.5e-5)])
    assert "drifted by 50%" in drifted
    [odd] = warnings_of([quiet, replace(quiet, doubling=1.0)])
    assert "1 of 2 samples did not take twice" in odd
