"""Which runs are scored: each filter is a name, and what a run has under that name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from calibrate.published.run_row import PublishedRun
from calibrate.validation.question import measured_of
from calibrate.validation.score import chip_label, model_of, runtime_label
from model.errors import InputError

Where: TypeAlias = tuple[tuple[str, str], ...]
"""Names of filters with the value that a run must have; all of them must hold."""

FILTERS: Mapping[str, Callable[[PublishedRun], str]] = {
    "quantity": lambda run: measured_of(run).quantity,
    "strategy": lambda run: run.strategy,
    "chip": chip_label,
    "runtime": runtime_label,
    "model": model_of,
    "trust": lambda run: run.trust,
}


def read_where(texts: Sequence[str]) -> Where:
    """The filters of `--where NAME=VALUE`.

    >>> read_where(["trust=high", "chip=M3 Max 40-core"])
    (('trust', 'high'), ('chip', 'M3 Max 40-core'))

    Raises:
        InputError: it is not of that form, or there is no such filter.
    """
    pairs = [text.partition("=") for text in texts]
    for text, (name, equals, _) in zip(texts, pairs, strict=True):
        if not equals or name not in FILTERS:
            right = f"NAME=VALUE with a name of {', '.join(FILTERS)}"
            raise InputError(f"--where {text}", "is no filter of runs", right)
    return tuple((name, value) for name, _, value in pairs)


def chosen(runs: Iterable[PublishedRun], where: Where) -> Iterator[PublishedRun]:
    """The runs that pass every filter, in their order.

    Raises:
        InputError: there are none, once all were looked at.
    """
    found = False
    for run in runs:
        if all(FILTERS[name](run) == value for name, value in where):
            found = True
            yield run
    if not found:
        asked = " and ".join(f"{name}={value}" for name, value in where) or "no filter"
        raise InputError(asked, "leaves no run", "ask for less")
