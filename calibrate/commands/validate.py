"""`tokroof validate`: predictions beside measured runs, with errors by group.

Runs are a published table (CSV or JSON lines), the records of `tokroof run`, or without a file
the shipped evidence. A published run is predicted with the profile of the machine it names, a
record with the one that `--machine` names or the default.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from calibrate.commands.own_machine import check_attention, check_chips, strangers
from calibrate.commands.validation_output import (
    comparisons_json,
    comparisons_text,
    groups_text,
    scores_json,
    scores_text,
)
from calibrate.comparison import compare_runs, summarise
from calibrate.fit.published.profiles import fit_published, scaled_profile
from calibrate.progress import token_bar
from calibrate.published.evidence import shipped_runs
from calibrate.published.profiles import Basis, RunMachine, profile_for
from calibrate.published.read_runs import each_run
from calibrate.published.refusal import Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.run_file import read_runs
from calibrate.validation.held_out import GROUPS, HeldOut
from calibrate.validation.score import MachineFor, score
from calibrate.validation.summary import summary_of
from calibrate.validation.which_runs import FILTERS, Where, chosen, read_where
from model.commands import options as shared
from model.errors import InputError
from model.machine.profile_store import choose_profile

TOLD_EVERY_ROWS = 200
LONGEST_LINE = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `validate`."""
    parser.add_argument(
        "runs",
        metavar="RUNS",
        nargs="?",
        help="published runs (CSV or JSON lines) or those that `tokroof run` writes "
        "(default: the shipped evidence)",
    )
    parser.add_argument(
        "--held-out",
        metavar="GROUP",
        help="fit each machine to the shipped runs without the "
        f"{', '.join(GROUPS)} that is predicted (published runs only)",
    )
    parser.add_argument(
        "--where",
        metavar="NAME=VALUE",
        action="append",
        help=f"only runs with this {', '.join(FILTERS)}; may be repeated (published runs only)",
    )
    parser.add_argument(
        "--any-machine",
        action="store_true",
        help="compare records of `tokroof run` with a machine of another chip all the same",
    )
    shared.add_machine(parser)


def execute(options: argparse.Namespace) -> int:
    """Compare and print."""
    if options.held_out is not None and options.machine is not None:
        right = "leave one of them out"
        raise InputError("--held-out", "fits its own machines, and --machine names one", right)
    if options.runs is None:
        check_published(options)
        return validate_published(shipped_runs(), options)
    path = Path(options.runs)
    if is_published(path):
        check_published(options)
        return validate_published(each_run(path), options)
    for flag, value in (("--held-out", options.held_out), ("--where", options.where)):
        if value is not None:
            shown = value if isinstance(value, str) else " ".join(value)
            right = "give published runs"
            raise InputError(f"{flag} {shown}", "is not for records of one machine", right)
    return validate_own(path, options)


def check_published(options: argparse.Namespace) -> None:
    """Refuse what published runs do not need.

    Raises:
        InputError: such an option.
    """
    if options.any_machine:
        right = "leave it out; --machine alone takes one for all runs"
        raise InputError("--any-machine", "is for records of `tokroof run`", right)


def is_published(path: Path) -> bool:
    """Whether a file is a published table and not records of `tokroof run`, by its first line.

    What cannot be read is neither, and its own reader says so.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            line = file.readline(LONGEST_LINE).strip()
    except OSError:
        return False
    if not line.startswith("{"):
        return bool(line)
    return '"target_model"' in line


def validate_published(runs: Iterable[PublishedRun], options: argparse.Namespace) -> int:
    """Score published runs, each with the profile of its own machine unless one is forced."""
    where = read_where(options.where or ())
    machine_for = machines(options)
    with token_bar(unit=" rows") as tell:
        scores = [score(run, machine_for) for run in counted(filtered(runs, where), tell)]
    summary = summary_of(scores)
    if options.json:
        print(json.dumps(scores_json(scores, summary), indent=2))
    else:
        print(scores_text(scores, summary))
    return 0


def filtered(runs: Iterable[PublishedRun], where: Where) -> Iterable[PublishedRun]:
    """The runs that are asked for; a list stays one, so that its length is known.

    Raises:
        InputError: there are none.
    """
    found = chosen(runs, where)
    return tuple(found) if isinstance(runs, Sequence) else found


def machines(options: argparse.Namespace) -> MachineFor:
    """What finds the machine of a run: one that is named, those held out, or packaged ones."""
    if options.machine is not None:
        return forced(options.machine)
    if options.held_out is not None:
        return HeldOut(shipped_runs(), options.held_out, fit_published)
    return packaged


def packaged(run: PublishedRun) -> RunMachine | Refusal:
    """The packaged machine of a run, else the one of its chip's data sheet."""
    return profile_for(run, scaled_profile)


def forced(spec: str) -> MachineFor:
    """One machine for all runs."""
    chosen = RunMachine(profile=choose_profile(spec).profile, basis=Basis.CHOSEN)

    def machine_for(run: PublishedRun) -> RunMachine | Refusal:
        del run
        return chosen

    return machine_for


def counted(
    runs: Iterable[PublishedRun], tell: Callable[[int, int | None], None]
) -> Iterator[PublishedRun]:
    """The runs, telling now and then how many there were."""
    total = len(runs) if isinstance(runs, Sequence) else None
    for done, run in enumerate(runs):
        if done % TOLD_EVERY_ROWS == 0:
            tell(done, total)
        yield run


def validate_own(path: Path, options: argparse.Namespace) -> int:
    """Compare records of `tokroof run` with one machine."""
    choice = choose_profile(options.machine)
    runs = read_runs(path)
    comparisons = compare_runs(runs, choice.profile)
    if not comparisons:
        wrong = "holds no run that can be predicted"
        raise InputError(options.runs, wrong, "record some by `tokroof run`")
    if not options.any_machine:
        check_chips(options.runs, runs, choice.profile.header)
        check_attention(options.runs, runs, choice.profile)
    if options.json:
        print(json.dumps(comparisons_json(comparisons), indent=2))
        return 0
    for note in (choice.note, *strangers(runs, choice.profile.header)):
        if note:
            print(note, file=sys.stderr)
    print(comparisons_text(comparisons))
    print()
    print(groups_text(summarise(comparisons)))
    return 0
