"""`tokroof context`: tokens per second over the context, and where memory is full."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import final

from model.commands import options as shared
from model.commands import predict as predict_command
from model.commands.answer import Answer, answer
from model.commands.heading import about_json, about_text
from model.commands.prediction_text import label, number
from model.commands.strategy_builders import Answerable
from model.commands.table import table
from model.prediction.capacity import Residents, longest_context, residents
from model.prediction.prediction import Prediction, predict
from model.units import GB

FIRST, LAST = 128, 1_048_576
"""Contexts are the powers of two between these, and the target's limit."""
OTHER_QUESTIONS = ("batch", "instead")
"""A batch speeds up nobody's own answer, and another network gives another one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `context`: those of `predict`, and how many strategies are followed."""
    predict_command.add_arguments(parser)
    parser.add_argument(
        "--best",
        metavar="N",
        help="follow plain decoding and the N fastest that speed up one answer of the target "
        "(default: all strategies)",
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A strategy over contexts, with the settings that `--context` chose for it.

    `memory` is at each context as well. `longest` is the most tokens that fit, and one of the
    contexts; None where not even an empty cache does. `full` says that memory is what stops it,
    and not a network's limit.
    """

    label: str
    strategy: str
    contexts: tuple[int, ...]
    predictions: tuple[Prediction, ...]
    memory: tuple[Residents, ...]
    longest: int | None
    full: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverContext:
    """The strategies over contexts, plain decoding first."""

    answer: Answer
    followed: tuple[Followed, ...]


def over_context(options: argparse.Namespace) -> OverContext:
    """Follow the strategies that the options ask for over contexts.

    Raises:
        InputError: as `predict` does, or a number of strategies that is none.
    """
    found = answer(options)
    pairs = list(zip(found.answerable, found.predictions, strict=True))
    if options.best is not None:
        best = shared.whole_number("--best", options.best, least=0, most=99)
        others = [pair for pair in pairs[1:] if pair[1].strategy not in OTHER_QUESTIONS]
        others.sort(key=lambda pair: pair[1].tokens_per_s or 0.0, reverse=True)
        pairs = [pairs[0], *others[:best]]
    return OverContext(
        answer=found,
        followed=tuple(_follow(each, prediction, found) for each, prediction in pairs),
    )


def _follow(answered: Answerable, prediction: Prediction, found: Answer) -> Followed:
    strategy, target, profile = answered.strategy, found.target, found.choice.profile
    longest, full = longest_context(strategy, target, profile.machine)
    limits = [each.architecture.context_limit for each, _ in strategy.residents(target)]
    contexts = contexts_to(min([each for each in limits if each is not None], default=LAST))
    if longest is not None and longest >= FIRST:
        contexts = tuple(sorted({*contexts, min(longest, LAST)}))
    return Followed(
        label=label(prediction),
        strategy=prediction.strategy,
        contexts=contexts,
        predictions=tuple(
            predict(strategy, target, profile, context=float(each)) for each in contexts
        ),
        memory=tuple(
            residents(strategy, target, profile.machine, context=float(each)) for each in contexts
        ),
        longest=longest,
        full=full,
    )


def contexts_to(limit: int) -> tuple[int, ...]:
    """Powers of two up to a limit, and the limit.

    >>> contexts_to(1000)
    (128, 256, 512, 1000)
    """
    powers = [2**power for power in range(7, 21) if FIRST <= 2**power < limit]
    return (*powers, min(limit, LAST))


def execute(options: argparse.Namespace) -> int:
    """Follow and print."""
    found = over_context(options)
    target, choice = found.answer.target, found.answer.choice
    machine = choice.profile.machine
    if options.json:
        document = {
            **about_json(target, machine),
            "strategies": [as_json(each) for each in found.followed],
        }
        print(json.dumps(document, indent=2))
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(f"{about_text(target, machine)}: tokens per second by tokens of context")
    header = ["context", *(each.label for each in found.followed)]
    contexts = sorted({context for each in found.followed for context in each.contexts})
    by_context = [dict(zip(f.contexts, f.predictions, strict=True)) for f in found.followed]
    cells = [
        [str(context), *(speed_at(each, context) for each in by_context)] for context in contexts
    ]
    print(table(header, cells))
    for each in found.followed:
        print(f"{each.label}: {in_words(each)}")
    return 0


def speed_at(predictions: dict[int, Prediction], context: int) -> str:
    """A speed as the table has it; what does not fit has none."""
    return number(predictions[context].tokens_per_s, 1) if context in predictions else "-"


def in_words(followed: Followed) -> str:
    """How many tokens fit, and what they take."""
    if followed.longest is None:
        return followed.memory[0].memory.reason
    why = "then memory is full" if followed.full else "the limit of the network; memory holds them"
    last = followed.memory[0].memory
    return f"{followed.longest} tokens fit, {why} (limit {last.limit_bytes / GB:.1f} GB)"


def as_json(followed: Followed) -> dict[str, object]:
    """A strategy over contexts as JSON."""
    return {
        "label": followed.label,
        "strategy": followed.strategy,
        "longest_context": followed.longest,
        "memory_is_full": followed.full,
        "contexts": [
            {
                "context": context,
                "tokens_per_s": prediction.tokens_per_s,
                "interval_90": prediction.interval_90,
                "speedup": prediction.speedup,
                **{name: value for name, value in asdict(memory).items() if name != "memory"},
                "working_set_bytes": memory.memory.working_set_bytes,
                "limit_bytes": memory.memory.limit_bytes,
                "fits": memory.memory.fits,
            }
            for context, prediction, memory in zip(
                followed.contexts, followed.predictions, followed.memory, strict=True
            )
        ],
    }
