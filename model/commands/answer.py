"""The answer to `predict`'s question, before anybody says it: for the command line and for charts.

Whoever shows a prediction asks here with the same options, so that all show the same numbers.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import final

from model.commands import machine_options, network_options, strategy_options
from model.commands import options as shared
from model.commands.machine_options import ChosenMachine
from model.commands.strategy_builders import Answerable, Question, Refused
from model.network.checkpoint import Checkpoint
from model.prediction.memory import check_fits
from model.prediction.need import Need
from model.prediction.prediction import Prediction, predict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is predicted of every strategy that was asked for, in the order of the strategies.

    `predictions` go with `answerable`; `needs` are the strategies whose progress nobody gave,
    `refused` those that the target, the machine or the settings do not allow.
    """

    choice: ChosenMachine
    target: Checkpoint
    draft: Checkpoint | None
    context: float
    answerable: tuple[Answerable, ...]
    predictions: tuple[Prediction, ...]
    needs: tuple[Need, ...]
    refused: tuple[Refused, ...]

    def check_fits(self) -> None:
        """Refuse a target that does not fit into the machine at all.

        Raises:
            InputError: it does not.
        """
        check_fits([self.target], self.choice.profile.machine, context=self.context)


def answer(options: argparse.Namespace) -> Answer:
    """Predict what the options of `predict` ask for.

    Raises:
        InputError: an option that is wrong, changes nothing, or lacks another.
    """
    choice = machine_options.chosen_machine(options)
    profile = choice.profile
    if options.draft is None and options.strategy is None:
        shared.refuse_draft_options(options)
    elif options.draft is None:
        shared.refuse_option(options, "draft_format")
    target, draft = shared.load_pair(options, profile.machine)
    target = network_options.with_settings(options, target)
    if draft is not None and options.kv_format is not None:
        # mlx-lm's speculative loop quantizes both caches.
        draft = network_options.with_cache(options.kv_format, draft)
    context = shared.read_context(options, target, draft)
    question = Question(
        options=options,
        target=target,
        draft=draft,
        machine=profile.machine,
        context=context,
        alone=strategy_options.asks_for_one(options),
    )
    strategy_options.check(question)
    found = strategy_options.entries(question)
    answerable = tuple(each for each in found if isinstance(each, Answerable))
    return Answer(
        choice=choice,
        target=target,
        draft=draft,
        context=context,
        answerable=answerable,
        predictions=tuple(
            predict(each.strategy, target, profile, context=context) for each in answerable
        ),
        needs=tuple(each for each in found if isinstance(each, Need)),
        refused=tuple(each for each in found if isinstance(each, Refused)),
    )
