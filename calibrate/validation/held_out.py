"""Machines fitted without the runs of one group: whole models, whole chips or whole studies.

A random row held out tests nothing: its neighbours of the same machine and model are in the fit.
So every run is predicted by a profile that saw no run of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, final

from calibrate.published.chips import Chip
from calibrate.published.names import chip_of, runtime_family
from calibrate.published.profiles import RunMachine, basis_of, with_memory
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.validation.score import model_of
from model.errors import InputError
from model.machine.profile import Profile

Fit: TypeAlias = Callable[[Sequence[PublishedRun], Chip, str], Profile]
"""A profile of a chip under a runtime family from runs, those of other chips included."""


def _chip_name(run: PublishedRun) -> str:
    chip = chip_of(run)
    return run.chip if isinstance(chip, Refusal) else chip.name


GROUPS: Mapping[str, Callable[[PublishedRun], str]] = {
    "model": model_of,
    "chip": _chip_name,
    "study": lambda run: run.source,
}
"""What may be held out, and which group of it a run belongs to."""


@final
class HeldOut:
    """The machine of a run, fitted to `runs` without those of the run's own group."""

    def __init__(self, runs: Sequence[PublishedRun], by: str, fit: Fit) -> None:
        if by not in GROUPS:
            right = f"one of {', '.join(GROUPS)}"
            raise InputError(f"--held-out {by}", "is no group of runs", right)
        self._runs = runs
        self._group = GROUPS[by]
        self._fit = fit
        self._fitted: dict[tuple[str, Chip, str], Profile | Refusal] = {}

    def __call__(self, run: PublishedRun) -> RunMachine | Refusal:
        """The machine, fitted once for all runs that may share it."""
        chip, family = chip_of(run), runtime_family(run)
        if isinstance(chip, Refusal):
            return chip
        if isinstance(family, Refusal):
            return family
        key = self._group(run), chip, family
        if key not in self._fitted:
            self._fitted[key] = self._without(*key)
        found = self._fitted[key]
        if isinstance(found, Refusal):
            return found
        if run.memory_bytes is not None:
            found = with_memory(found, int(run.memory_bytes))
        return RunMachine(profile=found, basis=basis_of(found))

    def _without(self, group: str, chip: Chip, family: str) -> Profile | Refusal:
        others = [run for run in self._runs if self._group(run) != group]
        try:
            return self._fit(others, chip, family)
        except InputError as error:
            return Refusal(reason=Reason.NO_PROFILE, text=str(error))
