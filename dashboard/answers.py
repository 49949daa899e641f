"""The model's answers to a selection, each computed once; no Streamlit, so that a test can ask."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from dashboard.selection import Selection
from model.commands import predict
from model.commands.answer import Answer, answer
from model.errors import InputError
from model.machine.profile_store import own_profiles

T = TypeVar("T")
P = ParamSpec("P")


def once(
    compute: Callable[Concatenate[Selection, P], T],
) -> Callable[Concatenate[Selection, P], T]:
    """Compute the answer to each selection once, while the files that it reads stay as they are.

    What a view asks beside the selection are values that can be compared. The answer of a
    selection whose models would have to be fetched unasked is a refusal.
    """

    @lru_cache(maxsize=64)
    def kept(
        selection: Selection, changed_ns: tuple[int, ...], *beside: P.args, **named: P.kwargs
    ) -> T:
        del changed_ns  # part of the question: a new calibration is another one
        return compute(selection, *beside, **named)

    def asked(selection: Selection, *beside: P.args, **named: P.kwargs) -> T:
        refuse_fetching(selection)
        changed_ns = tuple(_changed_ns(file) for file in _files(selection))
        return kept(selection, changed_ns, *beside, **named)

    return asked


@once
def predicted(selection: Selection) -> Answer:
    """Every strategy's prediction, as `tokroof predict --strategy all` has it.

    Raises:
        InputError: a model or machine that is not known, a setting that cannot be, or a target
            that does not fit into the machine.
    """
    found = answer(selection.predict().options(predict.add_arguments))
    found.check_fits()
    return found


def refuse_fetching(selection: Selection) -> None:
    """Refuse models on huggingface.co as long as nobody allowed to fetch them.

    Raises:
        InputError: the target or the draft is there.
    """
    for spec in (selection.target, selection.draft):
        if spec.startswith("hf:") and not selection.fetch:
            right = "tick the box that fetches its config.json, or give a local folder"
            raise InputError(spec, "is on huggingface.co, and nothing is fetched unasked", right)


def _files(selection: Selection) -> list[Path]:
    """Files that an answer may depend on: the user's profiles, and models that are folders."""
    specs = (selection.target, selection.draft, selection.machine or "")
    named = [Path(spec) for spec in specs if spec]
    return [*own_profiles().values(), *named, *(path / "config.json" for path in named)]


def _changed_ns(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except (OSError, ValueError):  # most are names from the list, and no files
        return 0
