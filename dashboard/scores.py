"""Runs beside their predictions, each predicted once: the shipped ones, and a file of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import final

from calibrate.commands.validate import is_published, packaged
from calibrate.comparison import Comparison, compare_runs
from calibrate.published.evidence import shipped_runs
from calibrate.published.read_runs import each_run
from calibrate.published.run_row import PublishedRun
from calibrate.run_file import read_runs
from calibrate.run_record import Run
from calibrate.validation.score import Score, score
from calibrate.validation.which_runs import FILTERS, Where, chosen
from model.errors import InputError
from model.machine.profile_store import choose_profile

MOST_OWN_RUNS = 5000
"""More would keep a page waiting for minutes; the command line takes any number."""
TELL_EVERY = 25


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFile:
    """Runs that a person brought: where they lie, and what the file was called."""

    path: Path
    name: str


@lru_cache(maxsize=16384)
def scored(run: PublishedRun) -> Score:
    """A published run with the packaged machine it names, as `tokroof validate` scores it."""
    return score(run, packaged)


def shipped_scores(
    where: Where, tell: Callable[[int, int], object] = lambda done, total: None
) -> tuple[tuple[PublishedRun, Score], ...]:
    """The shipped runs that are asked for; `tell` hears how many are done.

    Raises:
        InputError: no run is left.
    """
    runs = tuple(chosen(shipped_runs(), where))

    def each() -> Iterator[tuple[PublishedRun, Score]]:
        for done, run in enumerate(runs):
            if done % TELL_EVERY == 0:
                tell(done, len(runs))
            yield run, scored(run)

    return tuple(each())


@lru_cache(maxsize=len(FILTERS))
def values(name: str) -> tuple[str, ...]:
    """What a filter can ask of the shipped runs, sorted."""
    return tuple(sorted({FILTERS[name](run) for run in shipped_runs()}))


@lru_cache(maxsize=8)
def own_runs(own: OwnFile) -> tuple[PublishedRun, ...] | tuple[Run, ...]:
    """The runs of a file that a person brought: a published table, or records of `tokroof run`.

    Raises:
        InputError: as their readers do, or there are too many.
    """
    if is_published(own.path):
        found = tuple(islice(each_run(own.path, own.name), MOST_OWN_RUNS + 1))
    else:
        found = read_runs(own.path, own.name)
    if not found:
        raise InputError(own.name, "holds no run", "give runs, one a line")
    if len(found) > MOST_OWN_RUNS:
        right = "`tokroof validate FILE` takes any number"
        raise InputError(own.name, f"has more than {MOST_OWN_RUNS} runs", right)
    return found


def own_comparisons(
    own: OwnFile, machine: str | None
) -> tuple[tuple[PublishedRun | Run, Comparison], ...]:
    """Runs of one's own beside predictions; records are predicted with `machine`.

    Raises:
        InputError: as :func:`own_runs` does, or no machine of that name.
    """
    runs = own_runs(own)
    records = [run for run in runs if isinstance(run, Run)]
    if not records:
        published = (run for run in runs if isinstance(run, PublishedRun))
        return tuple((run, scored(run).comparison) for run in published)
    by_id = {run.id: run for run in records}
    found = compare_runs(records, choose_profile(machine).profile)
    return tuple((by_id[each.id], each) for each in found)
