"""Scores of a predictor whose errors are known."""

from __future__ import annotations

from dataclasses import replace

from calibrate.published.profiles import Basis, RunMachine
from calibrate.published.refusal import Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.validation.question import Question
from calibrate.validation.score import Score, answer, score
from model.machine.profile import Profile
from model.machine.profile_store import named_profile
from model.prediction.prediction import Prediction

M3 = RunMachine(profile=named_profile("m3-10core-16gb"), basis=Basis.CALIBRATED)


def on_m3(run: PublishedRun) -> RunMachine | Refusal:
    """The packaged M3, whatever ran."""
    del run
    return M3


def score_with(run: PublishedRun, predicted: float, *, width: float = 1.1) -> Score:
    """The score of a run that is predicted to have `predicted`, within a factor of `width`."""

    def ask(question: Question, profile: Profile) -> Prediction | Refusal:
        real = answer(question, profile)
        assert isinstance(real, Prediction), str(real)
        interval = (predicted / width, predicted * width)
        return replace(
            real,
            tokens_per_s=predicted,
            interval_90=interval,
            speedup=predicted,
            speedup_interval_90=interval,
        )

    return score(run, on_m3, ask)
