"""`tokroof run grid PLAN`: all runs of a plan, resumed where they were interrupted."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from calibrate.campaign.agenda import Agenda, drifts, planned_key, recorded_key
from calibrate.campaign.conduct import Conductor
from calibrate.campaign.plan import (
    SURELY_MADE,
    PlannedRun,
    planned_runs,
    read_plan,
    shipped_plans,
)
from calibrate.environment import Environment, read_environment
from calibrate.host_witness import HostWitness
from calibrate.progress import Progress, progress_on
from calibrate.repeats import fastest_host_s, undisturbed
from calibrate.run_file import append_run, appendable_runs, read_runs
from calibrate.run_record import Run
from calibrate.timing import Clock
from model.commands import options as shared
from model.errors import InputError, first_line

OWN_OPTIONS = {"command", "strategy", "target", "output", "stop_after", "json"}
"""What `run grid` takes beside its plan."""
USUAL_VALUES = ("64", "auto", False)
"""What other options are if they are left out."""
GUESSED_RUN_S = 3.0
"""What a run without a limit is taken to last, for the progress alone."""
OVERHEAD_S = 1.0
"""Opening, filling caches and warming up, as part of each run's expected time."""
WAIT_SHARE = 0.25
"""Of the time that a plan is expected to take, what waiting for a quiet host may take in all."""
DRIFT_WORTH_SAYING = 0.05
TOLD_REASONS = 3
"""Reasons why runs could not be made that the last line has room for."""


def shipped_names() -> str:
    """The plans that come with tokroof, in a line."""
    return ", ".join(shipped_plans())


def execute(options: argparse.Namespace) -> int:
    """Make what is left of the plan, and say what its runs are good for; 1 if any was refused."""
    if options.output is None:
        raise InputError("run grid", "keeps its runs in a file", "add --output RUNS.jsonl")
    check_alone(options)
    limit_s = stop_after(options)
    output = Path(options.output)
    planned = planned_runs(read_plan(options.target))
    environment, before = read_environment(), appendable_runs(output)
    agenda = Agenda(planned, before, environment)
    spare = spare_runs(agenda, planned, own_runs(before, planned, environment))
    progress = progress_on(sys.stderr)
    host = HostWitness(
        known_s=fastest_host_s(run for run in before if run.environment == environment),
        budget_s=WAIT_SHARE * sum(map(expected_s, agenda.left)),
        say=progress.say,
    )
    make = Conductor(progress.say, host=host).run
    refused = conduct(agenda, output, make, progress, limit_s=limit_s)
    runs = own_runs(read_runs(output) if output.exists() else (), planned, environment)
    if options.json:
        print(json.dumps([asdict(run) for run in runs], indent=2))
    else:
        print(report(runs, planned, agenda.needless - spare, len(refused), output))
    if not refused:
        return 0
    sys.stdout.flush()
    print(closing(refused), file=sys.stderr)
    return 1


def own_runs(
    runs: Sequence[Run], planned: Sequence[PlannedRun], environment: Environment
) -> list[Run]:
    """The runs that are of the plan and of this environment."""
    wanted = {planned_key(run) for run in planned}
    return [run for run in runs if run.environment == environment and recorded_key(run) in wanted]


def recorded(runs: Sequence[Run], planned: Sequence[PlannedRun]) -> int:
    """How many planned runs there is a record of."""
    return (Counter(map(recorded_key, runs)) & Counter(map(planned_key, planned))).total()


def spare_runs(agenda: Agenda, planned: Sequence[PlannedRun], runs: Sequence[Run]) -> int:
    """Runs that an agenda, before it is worked off, counts as needless although they were made.

    That was when the plan had no agreement yet.
    """
    return recorded(runs, planned) + len(agenda.left) + agenda.needless - len(planned)


def check_alone(options: argparse.Namespace) -> None:
    """Refuse an option that the plan states itself.

    Raises:
        InputError: such an option.
    """
    for name, value in vars(options).items():
        if name not in OWN_OPTIONS and value not in (None, *USUAL_VALUES):
            flag = f"--{name.replace('_', '-')} {value}"
            right = "write it in the plan's file, or leave it out"
            raise InputError(flag, "changes nothing in a grid", right)


def stop_after(options: argparse.Namespace) -> float | None:
    """The time after which no further run is begun, if any was given."""
    if options.stop_after is None:
        return None
    seconds = shared.number("--stop-after", options.stop_after)
    if seconds <= 0.0:
        flag = f"--stop-after {options.stop_after}"
        raise InputError(flag, "leaves no time for a run", "give seconds above 0")
    return seconds


def conduct(
    agenda: Agenda,
    output: Path,
    make: Callable[[PlannedRun], Run],
    progress: Progress,
    *,
    limit_s: float | None = None,
    clock: Clock = time.monotonic,
) -> list[str]:
    """Make the runs, each on the disk before the next begins; why each was refused that was.

    A run that cannot be made is said and passed over, and so is one whose makes agree already.

    Raises:
        InputError: the output cannot be written.
    """
    end_s = None if limit_s is None else clock() + limit_s
    refused: list[str] = []
    left = agenda.left
    progress.start(sum(map(expected_s, left)), beginning(left))
    try:
        for number, planned in enumerate(left, start=1):
            at = f"[{number}/{len(left)}] {planned.text}"
            if (apart := agenda.leave_out(planned)) is not None:
                progress.say(f"{at}: left out, its two fastest agree within {apart:.1%}")
                progress.advance(expected_s(planned), planned.text)
                continue
            if end_s is not None and clock() >= end_s:
                progress.say(f"time is up: {len(left) - number + 1} runs are left")
                break
            try:
                run = make(planned)
            except (InputError, RuntimeError, MemoryError) as error:
                refused.append(reason(error))
                progress.say(f"{at}: {first_line(error)}")
            else:
                append_run(output, run)
                agenda.add(run)
                progress.say(f"{at}: {run.tokens_per_s:.2f} tok/s")
            progress.advance(expected_s(planned), planned.text)
    except KeyboardInterrupt:
        progress.say(f"interrupted; {output} holds every finished run, and the command goes on")
        raise
    finally:
        progress.close()
    return refused


def expected_s(run: PlannedRun) -> float:
    """What a run is expected to last, for the progress."""
    return OVERHEAD_S + (run.limit_s or GUESSED_RUN_S)


def beginning(left: Sequence[PlannedRun]) -> str:
    """How many runs there are to do and how long that takes, at most where makes may agree."""
    may_agree = any(run.agreement and run.made_before >= SURELY_MADE for run in left)
    minutes = sum(map(expected_s, left)) / 60
    return f"{'up to ' if may_agree else ''}{len(left)} runs to do, about {minutes:.0f} min"


def reason(error: BaseException) -> str:
    """Why a run cannot be made, without what run it is, so that equal reasons are equal."""
    return error.wrong if isinstance(error, InputError) else first_line(error)


def closing(refused: Sequence[str]) -> str:
    """How many runs could not be made, and why: the most frequent reasons."""
    reasons = Counter(refused)
    told = reasons.most_common(TOLD_REASONS)
    said = "; ".join(f"{number} x {why}" for why, number in told)
    more = f"; {len(reasons) - len(told)} more reasons above" if len(reasons) > len(told) else ""
    runs = "1 run" if len(refused) == 1 else f"{len(refused)} runs"
    return f"{runs} could not be made: {said}{more}"


def beside_slow_host(runs: Sequence[Run]) -> int:
    """How many runs were made while the host was slower than beside others of them."""
    return len(runs) - len(undisturbed(runs, fastest_host_s(runs)))


def report(
    runs: Sequence[Run], planned: Sequence[PlannedRun], needless: int, refused: int, output: Path
) -> str:
    """How much was done, how far the device drifted, and what comes next."""
    there, wanted = recorded(runs, planned), len(planned) - needless
    done = f"{there} of {wanted} runs are in {output}, {refused} could not be made"
    lines = [f"{done}; {needless} left out, for their repeats agree" if needless else done]
    same = [run.matches_plain for run in runs if run.matches_plain is not None]
    if same:
        lines.append(f"{sum(same)} of {len(same)} greedy outputs equal plain decoding's")
    if disturbed := beside_slow_host(runs):
        lines.append(f"{disturbed} of these were made beside a host slower than it can be")
    found = drifts(runs)
    if found:
        worst = max(found, key=lambda each: abs(each[1]))
        spread = sorted(abs(drift) for _, drift in found)
        lines.append(
            f"drift of {len(found)} repeated plain runs: median {spread[len(spread) // 2]:.1%}, "
            f"worst {worst[1]:+.1%} ({worst[0]})"
        )
        lines += [
            f"  drifted: {name} {drift:+.1%}"
            for name, drift in found
            if abs(drift) > DRIFT_WORTH_SAYING
        ]
    lines.append(f"next: tokroof validate {output}")
    return "\n".join(lines)
