"""`tokroof demo`: calibrate quickly, predict runs that were not in the fit, run them, compare."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from calibrate.commands.calibrate import calibrate, default_name
from calibrate.commands.validation_output import comparisons_json, comparisons_text, groups_text
from calibrate.comparison import compare_runs, summarise
from calibrate.decode import Pace, decode_plain, decode_speculative
from calibrate.decoding.lossless import compared
from calibrate.environment import read_environment
from calibrate.open_network import SMOLLM2, open_network
from calibrate.progress import token_bar
from calibrate.prompts import prompt_tokens
from calibrate.run_record import Run
from model.commands.break_even import as_text
from model.commands.break_even_answer import break_even_rows
from model.machine.profile import Profile
from model.network.target import load_target
from model.prediction.needed_range import needed_ranges
from model.prediction.round_costs import round_costs
from model.progress.acceptance import Acceptance
from model.strategies.speculative import Speculative

FORMATS = ["4bit", "8bit", "3bit"]
DRAFT_LENGTHS = (1, 2, 4)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How long each run is: a slow device pays for every token of the prompt too."""

    context_tokens: int
    tokens: int


SLOW_LENGTH = Length(context_tokens=16, tokens=12)
FAST_LENGTH = Length(context_tokens=128, tokens=128)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A target that is decoded plainly and, if it has a draft, speculatively."""

    target: str
    format_name: str
    weights: str
    draft: str = ""
    draft_format: str = ""


REAL_PAIR = Arm(
    target=SMOLLM2, format_name="q4_1", weights="real", draft=SMOLLM2, draft_format="3bit"
)
SLOW_ARMS = (
    Arm(target="smollm2-135m", format_name="8bit", weights="random"),
    Arm(
        target="smollm2-360m",
        format_name="4bit",
        weights="random",
        draft="smollm2-135m",
        draft_format="8bit",
    ),
    REAL_PAIR,
)
FAST_ARMS = (
    Arm(target="llama-3.2-1b", format_name="8bit", weights="random"),
    Arm(
        target="llama-3.2-3b",
        format_name="4bit",
        weights="random",
        draft="llama-3.2-1b",
        draft_format="8bit",
    ),
    REAL_PAIR,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `demo`."""
    parser.add_argument("--json", action="store_true", help="print JSON, as `validate --json`")


def execute(options: argparse.Namespace) -> int:
    """Calibrate, predict, run, compare."""
    environment = read_environment()
    slow = environment.device == "cpu"
    name = default_name(environment)
    say(f"1/3 calibrating {environment.chip} ({environment.runtime}, {environment.device})")
    profile, path = calibrate(mode="quick", formats=FORMATS, name=name)
    say(f"    profile: {path}")
    arms = SLOW_ARMS if slow else FAST_ARMS
    say("2/3 running what the fit has not seen")
    length = SLOW_LENGTH if slow else FAST_LENGTH
    runs = [run for arm in arms for run in arm_runs(arm, length)]
    say("3/3 comparing; a speculative run is predicted from its own tokens per pass")
    comparisons = compare_runs(runs, profile)
    if options.json:
        print(json.dumps(comparisons_json(comparisons), indent=2))
        return 0
    print(comparisons_text(comparisons))
    print()
    print(groups_text(summarise(comparisons)))
    for arm in arms:
        if arm.draft:
            print()
            print(why(arm, profile, length))
    return 0


def arm_runs(arm: Arm, length: Length) -> Iterator[Run]:
    """The plain run of an arm, then one per draft length."""
    target = open_network(arm.target, arm.format_name, arm.weights)
    prompt = prompt_tokens(target, length.context_tokens)
    with token_bar() as bar:
        plain = decode_plain(target, prompt, length.tokens, Pace(progress=bar))
    yield reported(plain)
    if not arm.draft:
        return
    draft = open_network(arm.draft, arm.draft_format, arm.weights)
    for draft_length in DRAFT_LENGTHS:
        with token_bar() as bar:
            pace = Pace(progress=bar)
            run = decode_speculative(target, draft, prompt, length.tokens, draft_length, pace)
        yield reported(compared(run, plain))


def reported(run: Run) -> Run:
    """Tell that a run is over."""
    drafted = f" k={run.draft_length}, draft {run.draft} {run.draft_format}" if run.draft else ""
    equal = {None: "", True: ", output equals plain", False: ", output differs from plain"}
    say(
        f"    {run.target} {run.target_format} {run.strategy}{drafted}: "
        f"{run.tokens_per_s:.2f} tok/s{equal[run.matches_plain]}"
    )
    return run


def why(arm: Arm, profile: Profile, length: Length) -> str:
    """What the pair would need, and so why it wins or cannot."""
    machine = profile.machine
    target = machine.as_run(load_target(arm.target, arm.format_name))
    draft = machine.as_run(load_target(arm.draft, arm.draft_format))
    never = Acceptance(by_position=(0.0,))
    strategy = Speculative(draft=draft, draft_length=1, acceptance=never)
    context = length.context_tokens
    costs = round_costs(strategy, target, machine, context=context, draft_lengths=DRAFT_LENGTHS)
    ranges = needed_ranges(strategy, target, profile, context=context, draft_lengths=DRAFT_LENGTHS)
    title = f"{arm.target} {arm.format_name} drafted by {arm.draft} {arm.draft_format}:"
    return f"{title}\n{as_text(break_even_rows(costs, ranges))}"


def say(message: str) -> None:
    """Progress, apart from the result."""
    print(message, file=sys.stderr, flush=True)
