"""`tokroof predict`: tokens per second of every strategy that is asked for, before any run."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from model.commands import machine_options, network_options, strategy_options
from model.commands import options as shared
from model.commands.prediction_json import as_json, need_json, progress_json
from model.commands.prediction_text import (
    need_lines,
    prediction_lines,
    progress_lines,
    refused_lines,
)
from model.commands.runtime_text import runtime_json, runtime_lines
from model.commands.strategy_builders import Answerable, Question, Refused
from model.prediction.memory import check_fits
from model.prediction.need import Need
from model.prediction.prediction import predict
from model.progress.acceptance import MAX_DRAFT_LENGTH


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `predict`."""
    shared.add_pair(parser, draft_required=False)
    parser.add_argument(
        "--draft-length",
        metavar="K",
        help=f"draft tokens per round, 1..{MAX_DRAFT_LENGTH} (default: the best one)",
    )
    network_options.add_arguments(parser)
    strategy_options.add_arguments(parser)
    machine_options.add_arguments(parser)


def execute(options: argparse.Namespace) -> int:
    """Predict and print."""
    choice = machine_options.chosen_machine(options)
    profile, machine = choice.profile, choice.profile.machine
    if options.draft is None and options.strategy is None:
        shared.refuse_draft_options(options)
    elif options.draft is None:
        shared.refuse_option(options, "draft_format")
    target, draft = shared.load_pair(options, machine)
    target = network_options.with_settings(options, target)
    if draft is not None and options.kv_format is not None:
        # mlx-lm's speculative loop quantizes both caches.
        draft = network_options.with_cache(options.kv_format, draft)
    context = shared.read_context(options, target, draft)
    question = Question(
        options=options,
        target=target,
        draft=draft,
        machine=machine,
        context=context,
        alone=strategy_options.asks_for_one(options),
    )
    strategy_options.check(question)
    found = strategy_options.entries(question)
    answers = [each for each in found if isinstance(each, Answerable)]
    needs = [each for each in found if isinstance(each, Need)]
    refused = [each for each in found if isinstance(each, Refused)]
    predictions = [predict(each.strategy, target, profile, context=context) for each in answers]
    if options.json:
        document: dict[str, Any] = {
            "target": target.architecture.name,
            "format": target.weight_format.name,
            "machine": machine.name,
            "runtime": machine.runtime,
            "context": context,
            "kv_format": options.kv_format,
            "predictions": [
                as_json(prediction) | {"progress": progress_json(answer.published)}
                for prediction, answer in zip(predictions, answers, strict=True)
            ],
            "needs": [need_json(each) for each in needs],
            "refused": [asdict(each) for each in refused],
        }
        if options.runtime is not None:
            document["row_costs"] = runtime_json(target, choice.own, profile, context=context)
        print(json.dumps(document, indent=2))
    check_fits([target], machine, context=context)
    if options.json:
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(
        f"{target.architecture.name} {target.weight_format.name} on {machine.chip} "
        f"({machine.runtime}), {context:g} tokens of context"
        + ("" if options.kv_format is None else f", cache in {options.kv_format}")
    )
    lines = [*prediction_lines(predictions), f"constants: {profile.origin.label}"]
    lines += progress_lines(answers) + need_lines(needs) + refused_lines(refused)
    if options.runtime is not None:
        lines += runtime_lines(target, choice.own, profile, context=context)
    print("\n".join(lines))
    return 0
