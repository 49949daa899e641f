"""What the controls ask and what the model says to it; no Streamlit, so that a test can ask too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import final

from model.errors import InputError
from model.machine.machine import Machine
from model.machine.profile_store import choose_profile, own_profiles
from model.network.checkpoint import Checkpoint
from model.network.target import load_target
from model.prediction.break_even import break_even
from model.prediction.memory import check_fits
from model.prediction.prediction import Prediction, predict
from model.prediction.round_costs import round_costs
from model.progress.acceptance import Acceptance
from model.strategies.base import AbstractStrategy
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative

DRAFT_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One state of the controls; the defaults are what the dashboard opens with.

    `machine` None is the user's last calibration, else the packaged M3. `fetch` allows configs
    to be fetched from huggingface.co: a link can name a model, and must not fetch it unasked.
    """

    machine: str | None = None
    target: str = "llama-3.1-8b"
    target_format: str = "4bit"
    draft: str = "llama-3.2-1b"
    draft_format: str = "4bit"
    acceptance: float = 0.6
    context: int = 1024
    fetch: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Plain decoding and speculation at each of `DRAFT_LENGTHS`, on one machine.

    `speculative` and `break_even` go with `DRAFT_LENGTHS`; break-even is None where no acceptance
    wins. `where` says what was predicted, `note` how the machine came to be chosen.
    """

    where: str
    note: str
    acceptance: float
    plain: Prediction
    speculative: tuple[Prediction, ...]
    break_even: tuple[float | None, ...]

    @property
    def fitting(self) -> tuple[Prediction, ...]:
        """The predictions that have a speed: the others would not fit into memory."""
        return tuple(each for each in (self.plain, *self.speculative) if each.memory.fits)

    @property
    def best(self) -> Prediction | None:
        """The draft length with the largest speedup; None where none fits."""
        fitting = [each for each in self.speculative if each.memory.fits]
        return max(fitting, key=lambda each: each.speedup or 0.0, default=None)


def answer(selection: Selection) -> Answer:
    """Predict what was selected; the same question is computed once, while its files stay.

    Raises:
        InputError: a model or machine that is not known, a draft with another vocabulary, a
            format that the machine was not measured with, more context than the model can hold,
            or a target that does not fit into the machine.
    """
    named = [Path(spec) for spec in (selection.target, selection.draft)]
    files = [*own_profiles().values(), *named, *(path / "config.json" for path in named)]
    return _computed(selection, tuple(_changed_ns(file) for file in files))


def _changed_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except (OSError, ValueError):  # most are names from the list, and no files
        return 0


@lru_cache(maxsize=256)
def _computed(selection: Selection, _changed: tuple[int, ...]) -> Answer:
    choice = choose_profile(selection.machine)
    profile, machine = choice.profile, choice.profile.machine
    target = _loaded(selection.target, selection.target_format, machine, selection.fetch)
    draft = _loaded(selection.draft, selection.draft_format, machine, selection.fetch)
    context = float(selection.context)
    for checkpoint in (target, draft):
        checkpoint.check_context(context)
    check_fits([target], machine, context=context)
    acceptance = Acceptance(by_position=(selection.acceptance,))
    drafted = Speculative(draft=draft, draft_length=1, acceptance=acceptance)
    strategies: list[AbstractStrategy] = [Plain(), *map(drafted.with_length, DRAFT_LENGTHS)]
    plain, *speculative = (predict(each, target, profile, context=context) for each in strategies)
    costs = round_costs(drafted, target, machine, context=context, draft_lengths=DRAFT_LENGTHS)
    return Answer(
        where=f"{target.architecture.name} {target.weight_format.name}, drafted by "
        f"{draft.architecture.name} {draft.weight_format.name}, on {machine.chip} "
        f"({machine.runtime}), {selection.context:,} tokens of context; "
        f"constants: {profile.origin.label}",
        note=choice.note,
        acceptance=selection.acceptance,
        plain=plain,
        speculative=tuple(speculative),
        break_even=break_even(costs),
    )


def _loaded(spec: str, format_name: str, machine: Machine, fetch: bool) -> Checkpoint:
    if spec.startswith("hf:") and not fetch:
        right = "tick the box that fetches its config.json, or give a local folder"
        raise InputError(spec, "is on huggingface.co, and nothing is fetched unasked", right)
    return machine.as_run(load_target(spec, format_name))
