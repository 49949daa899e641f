"""`tokroof predict`: tokens per second of every strategy that is asked for, before any run."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from model.commands import machine_options, network_options, strategy_options
from model.commands import options as shared
from model.commands.answer import answer
from model.commands.heading import about_json, about_text
from model.commands.prediction_json import as_json, need_json, progress_json
from model.commands.prediction_text import (
    need_lines,
    prediction_lines,
    progress_lines,
    refused_lines,
)
from model.commands.runtime_text import runtime_json, runtime_lines
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
    found = answer(options)
    target, choice, context = found.target, found.choice, found.context
    profile, machine = choice.profile, choice.profile.machine
    if options.json:
        document: dict[str, Any] = {
            **about_json(target, machine),
            "context": context,
            "kv_format": options.kv_format,
            "predictions": [
                as_json(prediction) | {"progress": progress_json(answered.published)}
                for prediction, answered in zip(found.predictions, found.answerable, strict=True)
            ],
            "needs": [need_json(each) for each in found.needs],
            "refused": [asdict(each) for each in found.refused],
        }
        if options.runtime is not None:
            document["row_costs"] = runtime_json(target, choice.own, profile, context=context)
        print(json.dumps(document, indent=2))
    found.check_fits()
    if options.json:
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(
        f"{about_text(target, machine)}, {context:g} tokens of context"
        + ("" if options.kv_format is None else f", cache in {options.kv_format}")
    )
    lines = [*prediction_lines(found.predictions), f"constants: {profile.origins_text}"]
    lines += progress_lines(found.answerable) + need_lines(found.needs)
    lines += refused_lines(found.refused)
    if options.runtime is not None:
        lines += runtime_lines(target, choice.own, profile, context=context)
    print("\n".join(lines))
    return 0
