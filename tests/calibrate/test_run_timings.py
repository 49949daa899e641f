"""Real runs in the fit: their rounds are priced by the whole model, and teach what probes miss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrate.environment import Environment
from calibrate.fit.overheads import fit_overheads
from calibrate.fit.run_timings import run_timings
from calibrate.run_record import Run
from calibrate.run_strategy import strategy_of
from model.machine.machine import Machine
from tests.calibrate.test_overheads import HOST, TRUTH, bare, samples

ENVIRONMENT = Environment(
    device="cuda",
    chip="test",
    architecture="test",
    memory_bytes=2**37,
    recommended_working_set_bytes=None,
    os="Linux",
    python="3.12",
    mlx="0.32.4",
    mlx_lm="0.32.2",
    mlx_variables=(),
)
BLANK = Run(
    id="planted",
    date="2026-01-01",
    strategy="speculative",
    target="llama-3.2-3b",
    target_format="4bit",
    target_weights="random",
    draft="llama-3.2-1b",
    draft_format="4bit",
    draft_length=1,
    context_tokens=128,
    tokens=8,
    round_s=(1.0,) * 8,
    accepted=(0,) * 8,
    output=(0,) * 8,
    matches_plain=True,
    peak_memory_bytes=0,
    environment=ENVIRONMENT,
)


def planted(draft_length: int, machine: Machine) -> Run:
    """A run whose rounds took what the planted machine takes."""
    run = replace(BLANK, draft_length=draft_length)
    strategy, target, context = strategy_of(run, machine)
    round_s = float(strategy.round(target, machine, context).round_s)
    return replace(run, round_s=(round_s,) * 8)


def test_a_run_is_priced_from_its_settings_and_progress() -> None:
    run = replace(BLANK, draft_length=2, accepted=(2, 0, 1, 2, 2, 0, 2, 1))
    strategy, target, context = strategy_of(run, TRUTH)
    assert strategy.tokens_per_pass == pytest.approx(run.tokens_per_pass)
    assert target.architecture.name == "llama-3.2-3b"
    assert context == 128 + 4


def test_round_timings_follow_the_constants() -> None:
    runs = [planted(k, TRUTH) for k in (1, 4)]
    names = ("sync_s", "reshape_s")
    timings = run_timings(runs, names, TRUTH)
    near, far = (timings.predict_s(np.array([0.0, reshape])) for reshape in (0.0, 1.0))
    np.testing.assert_allclose(far - near, 1.0, rtol=1e-2)


def test_runs_teach_what_no_probe_of_a_pass_sees() -> None:
    """Without growing probes only the rounds know what a new context costs."""
    probes = [each for each in samples(0.01) if each.text("mode") != "growing"]
    runs = [planted(k, TRUTH) for k in (1, 2, 4, 7)]
    constants, _ = fit_overheads(probes, bare(), bare(), runs)
    assert constants["reshape_s"].value == pytest.approx(HOST.reshape_s, rel=0.05)
