"""A profile from samples: the whole fit, in the order in which the constants become known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from calibrate.environment import Environment
from calibrate.fit.attention_laws import fit_attention
from calibrate.fit.bootstrap import DRAWS
from calibrate.fit.experts import fit_experts
from calibrate.fit.laws import fit_laws, reference_jitter_s
from calibrate.fit.overheads import fit_overheads
from calibrate.fit.pass_timings import PASS_MODES
from calibrate.planned_attention import own_attention
from calibrate.probe_network import DIMENSIONS
from calibrate.run_record import Run
from calibrate.samples import PASS_PROBES, Sample, StoredSample
from model.errors import InputError
from model.machine.constant import Constant, Origin
from model.machine.kernels.dispatch import dispatch_of
from model.machine.kernels.gpu import gpu_of
from model.machine.profile import (
    ALIGNED,
    DEVICE_CONSTANTS,
    HOST_CONSTANTS,
    TWO_PASS,
    UNFUSED,
    Header,
    Profile,
    seeded_draws,
)
from model.typed_json import record_from_json

PASS_SETTINGS = (*(ours for _, ours in DIMENSIONS), "rows", "context")
COUNTS = {
    "op": (),
    "linear": ("depth", "columns", "rows"),
    "attention": ("query_heads", "kv_heads", "head_dim", "context", "rows"),
    "layers": PASS_SETTINGS,
    "host": PASS_SETTINGS,
}
"""Probes that a fit needs, and the settings of each that are counts."""


def fit_profile(
    samples: Sequence[Sample],
    environment: Environment,
    *,
    name: str,
    created: str,
    runs: Sequence[Run] = (),
) -> Profile:
    """Fit every constant of a machine from its samples, and from real runs where there are any.

    Raises:
        InputError: a kind of probe is missing, so that its constants are not determined.
    """
    present = {sample.probe for sample in samples}
    for probe in COUNTS:
        if probe not in present:
            raise InputError(
                f"calibration {name}", f"has no {probe!r} sample", "run `tokroof calibrate` again"
            )
    activation_bytes = 4 if environment.device == "cpu" else 2
    kernel = kernel_constant(samples)
    jitter_s = reference_jitter_s(samples)
    gpu = gpu_of(environment.architecture, environment.gpu_cores)
    dispatch = dispatch_of(environment.device, environment.runtime, gpu)
    laws = fit_laws(samples, kernel.value, jitter_s, dispatch)
    experts, of_experts = fit_experts(samples, kernel.value, jitter_s)
    laws += experts
    vector = own_attention(environment)
    attention, of_scores = fit_attention(samples, kernel.value, jitter_s, activation_bytes, vector)
    known = {"kernel_s": kernel} | of_experts | of_scores
    for law in (*laws, *attention.values()):
        known |= law.constants
    forms = {shape: law.form for shape, law in attention.items()}
    header = Header(
        name=name,
        chip=environment.chip,
        device=environment.device,
        runtime=environment.runtime,
        created=created,
        memory_bytes=environment.memory_bytes,
        recommended_working_set_bytes=environment.recommended_working_set_bytes,
        activation_bytes=activation_bytes,
        context_measured=max(s.number("context") for s in samples if s.probe == "attention"),
        residual_log=0.0,
        laws=tuple(law.form for law in laws),
        attention=forms[""],
        two_pass_attention=forms.get(TWO_PASS),
        unfused_attention=forms.get(UNFUSED),
        aligned_attention=forms.get(ALIGNED),
        gpu=gpu,
    )
    return with_overheads(header, known, samples, environment, runs)


def with_overheads(
    header: Header,
    known: Mapping[str, Constant],
    samples: Sequence[Sample],
    environment: Environment,
    runs: Sequence[Run],
) -> Profile:
    """The profile whose laws are `known`, with its overheads fitted on top of them."""
    unknown = Constant(
        value=0.0, stderr=0.0, unit="s", origin=Origin.MEASURED, draws=np.zeros(DRAWS)
    )
    bare = Profile(
        header=header,
        constants=dict.fromkeys((*DEVICE_CONSTANTS, *HOST_CONSTANTS), unknown) | dict(known),
        environment=environment.to_json(),
        samples=tuple(asdict(StoredSample.of(sample)) for sample in samples),
    )
    overheads, residual_log = fit_overheads(samples, bare.machine, bare.sampled_machine, runs)
    return replace(
        bare,
        header=replace(header, residual_log=residual_log),
        constants=dict(known) | overheads,
    )


def kernel_constant(samples: Sequence[Sample]) -> Constant:
    """The floor of a dependent kernel: the chain of the smallest operations."""
    sample = next(sample for sample in samples if sample.probe == "op")
    stderr = max(sample.spread, 0.02) * sample.seconds
    return Constant(
        value=sample.seconds,
        stderr=stderr,
        unit="s",
        origin=Origin.MEASURED,
        draws=seeded_draws(sample.seconds, stderr, count=DRAWS, seed=1),
    )


def refit_profile(profile: Profile, runs: Sequence[Run] = ()) -> Profile:
    """Fit a profile again from the samples it keeps, with these runs instead of earlier ones.

    Raises:
        InputError: the profile keeps no samples, as a prior does, or one of them cannot be used.
    """
    header = profile.header
    where = f"profile {header.name}"
    if not profile.samples:
        raise InputError(where, "keeps no samples", "give a profile that `calibrate` wrote")
    samples = [
        stored_sample(stored, f"{where}: samples[{index}]")
        for index, stored in enumerate(profile.samples)
    ]
    environment = Environment.from_json(profile.environment, f"{where}: environment")
    return fit_profile(samples, environment, name=header.name, created=header.created, runs=runs)


def stored_sample(stored: object, where: str) -> Sample:
    """A sample that a profile keeps, with what a fit needs of it.

    Raises:
        InputError: a field or a setting is missing, or has an impossible value.
    """
    sample = record_from_json(StoredSample, stored, where).sample
    settings = dict(sample.settings)
    counts = [settings.get(name) for name in COUNTS.get(sample.probe, ())]
    rules = (
        (sample.seconds > 0.0 and sample.spread >= 0.0 and sample.repeats > 0, "has no timing"),
        (all(isinstance(count, int) and count > 0 for count in counts), "lacks a count"),
        (sample.probe not in ("linear", *PASS_PROBES) or "format" in settings, "lacks its format"),
        (sample.probe not in PASS_PROBES or settings.get("mode") in PASS_MODES, "lacks its mode"),
    )
    for holds, wrong in rules:
        if not holds:
            raise InputError(where, wrong, "calibrate again, or restore the file")
    return sample
