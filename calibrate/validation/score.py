"""One published run beside its prediction, or beside the reason why there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias, final

from calibrate.comparison import SPEEDUP, Comparison
from calibrate.published.names import chip_of, runtime_family, target_of
from calibrate.published.profiles import RunMachine, fitted_to
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.validation.question import Measured, Question, measured_of, question_of
from calibrate.validation.whole_answer import prefill_share, with_prefill
from model.errors import InputError
from model.machine.profile import Profile
from model.prediction.prediction import Prediction, predict

MachineFor: TypeAlias = Callable[[PublishedRun], RunMachine | Refusal]
"""The machine that a run is predicted with: packaged, forced, or fitted without some runs."""
Answer: TypeAlias = Callable[[Question, Profile], Prediction | Refusal]
"""What predicts; tests put one with known errors in its place."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A run's comparison, its refusal if it has one, and what a sweep over k knows it by.

    `sweep` is shared by runs that differ in their draft length alone; None where no speedup was
    predicted.
    """

    comparison: Comparison
    refusal: Refusal | None
    sweep: tuple[object, ...] | None
    draft_length: int | None


@lru_cache(maxsize=16384)
def answer(question: Question, profile: Profile) -> Prediction | Refusal:
    """The prediction of a question, made once for all runs that ask it."""
    try:
        prediction = predict(
            question.strategy, question.target, profile, context=question.context_tokens
        )
    except InputError as error:
        return Refusal(reason=Reason.NOT_PRICED, text=str(error))
    if not prediction.memory.fits:
        return Refusal(reason=Reason.DOES_NOT_FIT, text=prediction.memory.reason)
    return _of_whole_answer(prediction, question, profile)


def _of_whole_answer(prediction: Prediction, question: Question, profile: Profile) -> Prediction:
    """The prediction with the speedup of all that the run's times hold."""
    whole, interval = question.whole_answer, prediction.speedup_interval_90
    if whole is None or prediction.speedup is None or interval is None:
        return prediction
    context = question.context_tokens
    share = prefill_share(whole, question.target, profile, context=context)
    low, high = (with_prefill(end, share) for end in interval)
    speedup = with_prefill(prediction.speedup, share)
    return replace(prediction, speedup=speedup, speedup_interval_90=(low, high))


def score(run: PublishedRun, machine_for: MachineFor, ask: Answer = answer) -> Score:
    """Predict a run from its settings and progress; nothing of its times is used."""
    measured = measured_of(run)
    question, machine = question_of(run), machine_for(run)
    if isinstance(question, Refusal):
        return _score(run, measured, question, machine)
    if isinstance(machine, Refusal):
        return _score(run, measured, machine, machine)
    return _score(run, measured, ask(question, machine.profile), machine)


def _score(
    run: PublishedRun,
    measured: Measured,
    found: Prediction | Refusal,
    machine: RunMachine | Refusal,
) -> Score:
    prediction = None if isinstance(found, Refusal) else found
    predicted, interval_90 = None, None
    if prediction is not None:
        predicted, interval_90 = prediction.tokens_per_s, prediction.interval_90
        if measured.quantity == SPEEDUP:
            predicted, interval_90 = prediction.speedup, prediction.speedup_interval_90
    comparison = Comparison(
        id=run.id,
        label=_label(run),
        quantity=measured.quantity,
        measured=measured.value,
        predicted=predicted,
        interval_90=interval_90,
        bound=prediction and prediction.bound,
        verdict=prediction and prediction.verdict,
        refused=str(found) if isinstance(found, Refusal) else None,
        groups=groups_of(run, measured.quantity, machine),
    )
    return Score(
        comparison=comparison,
        refusal=found if isinstance(found, Refusal) else None,
        sweep=_sweep(run) if measured.quantity == SPEEDUP and prediction else None,
        draft_length=run.draft_length,
    )


def groups_of(run: PublishedRun, quantity: str, machine: RunMachine | Refusal) -> tuple[str, ...]:
    """The names a run is summed up under: all, its quantity, and that with one thing each."""
    basis, seen = "no machine", "not in the fit"
    if not isinstance(machine, Refusal):
        basis = machine.basis.value
        seen = "in the fit" if run.id in fitted_to(machine.profile) else seen
    parts = (
        *("", basis, run.strategy, f"{run.strategy}, {basis}", f"{run.strategy}, {seen}"),
        *(f"chip {chip_label(run)}", f"runtime {runtime_label(run)}", f"model {model_of(run)}"),
    )
    # Many runs share a name, and one string.
    return ("all", *(sys.intern(f"{quantity}, {part}" if part else quantity) for part in parts))


def model_of(run: PublishedRun) -> str:
    """The network that ran, by the name of its shape; as published where it is not known."""
    target = target_of(run)
    return run.target if isinstance(target, Refusal) else target.architecture.name


def chip_label(run: PublishedRun) -> str:
    """The chip with its cores; as published where it is not known."""
    chip = chip_of(run)
    return (run.chip or "not stated") if isinstance(chip, Refusal) else chip.label


def runtime_label(run: PublishedRun) -> str:
    """The family of runtimes that the model prices a run by."""
    family = runtime_family(run)
    return "not known" if isinstance(family, Refusal) else family


def _sweep(run: PublishedRun) -> tuple[object, ...]:
    return (
        *(run.source, run.chip, run.gpu_cores, run.runtime, run.runtime_version, run.target),
        *(run.quant, run.strategy, run.draft, run.batch, run.context_tokens, run.task),
    )


def _label(run: PublishedRun) -> str:
    drafted = "" if run.draft_length is None else f" k={run.draft_length}"
    return f"{run.chip} {run.target} {run.quant} {run.strategy}{drafted}"
