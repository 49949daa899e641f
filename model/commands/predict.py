"""`tokroof predict`: tokens per second of plain and speculative decoding, before any run."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from model.acceptance import MAX_DRAFT_LENGTH, Acceptance
from model.break_even import best_draft_length, round_costs
from model.checkpoint import Checkpoint
from model.commands import options as shared
from model.commands.table import table
from model.errors import InputError
from model.memory import check_fits
from model.prediction import Prediction, predict
from model.profile import Profile
from model.profile_store import choose_profile
from model.strategies.base import AbstractStrategy
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative
from model.units import MILLI

LONGEST_SEARCHED = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `predict`."""
    shared.add_pair(parser, draft_required=False)
    parser.add_argument(
        "--draft-length",
        metavar="K",
        help=f"draft tokens per round, 1..{MAX_DRAFT_LENGTH} (default: the best one)",
    )
    shared.add_progress(parser)
    shared.add_machine(parser)


def execute(options: argparse.Namespace) -> int:
    """Predict and print."""
    choice = choose_profile(options.machine)
    machine = choice.profile.machine
    if options.draft is None:
        shared.refuse_draft_options(options)
    target, draft = shared.load_pair(options, machine)
    context = shared.read_context(options, target, draft)
    strategies: list[AbstractStrategy] = [Plain()]
    if draft is not None:
        strategies.append(speculative(options, target, draft, choice.profile, context))
    predictions = [predict(each, target, choice.profile, context=context) for each in strategies]
    if options.json:
        document = {
            "target": target.architecture.name,
            "format": target.weight_format.name,
            "machine": machine.name,
            "context": context,
            "predictions": [as_json(prediction) for prediction in predictions],
        }
        print(json.dumps(document, indent=2))
    check_fits([target], machine, context=context)
    if options.json:
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(
        f"{target.architecture.name} {target.weight_format.name} on {machine.chip} "
        f"({machine.runtime}), {context:g} tokens of context"
    )
    print(as_text(predictions))
    return 0


def speculative(
    options: argparse.Namespace,
    target: Checkpoint,
    draft: Checkpoint,
    profile: Profile,
    context: float,
) -> Speculative:
    """The strategy the options describe; without a draft length, the one that pays best.

    Raises:
        InputError: no acceptance was given; a made-up one would decide the answer.
    """
    draft_length = shared.read_draft_length(options)
    acceptance = shared.read_acceptance(options, draft_length)
    if acceptance is None:
        raise InputError(
            f"--draft {options.draft}",
            "comes without a word on how often it is right",
            "add --acceptance 0.7, or ask `tokroof break-even` what it would have to be",
        )
    if draft_length is None:
        draft_length = best_length(target, draft, profile, context, acceptance)
    return Speculative(draft=draft, draft_length=draft_length, acceptance=acceptance)


def best_length(
    target: Checkpoint,
    draft: Checkpoint,
    profile: Profile,
    context: float,
    acceptance: Acceptance,
) -> int:
    """The draft length up to 16 with the largest predicted speedup."""
    lengths = range(1, LONGEST_SEARCHED + 1)
    costs = round_costs(target, draft, profile.machine, context=context, draft_lengths=lengths)
    return best_draft_length(costs, acceptance).draft_length


def as_json(prediction: Prediction) -> dict[str, Any]:
    """One prediction in the schema of `predict --json`."""
    return {
        "strategy": prediction.strategy,
        "settings": prediction.settings,
        "tokens_per_s": prediction.tokens_per_s,
        "interval_90": prediction.interval_90,
        "speedup": prediction.speedup,
        "speedup_interval_90": prediction.speedup_interval_90,
        "tokens_per_pass": prediction.tokens_per_pass,
        "round_s": prediction.round_s,
        "parts_s": dict(prediction.parts_s),
        "bound": prediction.bound.value,
        "verdict": prediction.verdict,
        "fits": prediction.memory.fits,
        "working_set_bytes": prediction.memory.working_set_bytes,
        "origin": prediction.origin.label,
        "warnings": list(prediction.warnings),
    }


def as_text(predictions: list[Prediction]) -> str:
    """Predictions as a table, the parts of their time, and what to be careful about."""
    rows = [
        [
            label(prediction),
            number(prediction.tokens_per_s, 1),
            span(prediction.interval_90, 1),
            number(prediction.speedup, 2),
            span(prediction.speedup_interval_90, 2),
            f"{prediction.tokens_per_pass:.2f}",
            prediction.bound.value,
            prediction.verdict,
        ]
        for prediction in predictions
    ]
    header = ["strategy", "tok/s", "90 %", "speedup", "90 %", "tok/pass", "bound", "verdict"]
    lines = [table(header, rows), ""]
    for prediction in predictions:
        parts = "  ".join(
            f"{name} {part_s / MILLI:.2f}" for name, part_s in prediction.parts_s if part_s > 0
        )
        lines.append(f"{label(prediction)}: {prediction.round_s / MILLI:.2f} ms = {parts}")
    lines += [
        f"{label(prediction)}: {prediction.memory.reason}"
        for prediction in predictions
        if not prediction.memory.fits
    ]
    lines += sorted({f"note: {warning}" for p in predictions for warning in p.warnings})
    lines.append(f"constants: {predictions[0].origin.label}")
    return "\n".join(lines)


def label(prediction: Prediction) -> str:
    """A strategy with its draft length."""
    length = prediction.settings.get("draft_length")
    return prediction.strategy if length is None else f"{prediction.strategy} k={length}"


def number(value: float | None, digits: int) -> str:
    """A number as text; a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def span(interval: tuple[float, float] | None, digits: int) -> str:
    """An interval as text; a dash where there is none."""
    return "-" if interval is None else f"{interval[0]:.{digits}f}-{interval[1]:.{digits}f}"
