"""What no record of a run can say."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from calibrate.run_settings import DRAFTED
from model.errors import InputError

if TYPE_CHECKING:
    from calibrate.run_record import Run

MAX_TOKENS = 100_000_000


def is_date(text: str) -> bool:
    """Whether that is a date as ISO 8601 writes it.

    >>> is_date("2026-11-30T22:37:11+00:00"), is_date("yesterday")
    (True, False)
    """
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def check_run(run: Run) -> None:
    """Refuse a record that contradicts itself.

    Raises:
        InputError: such a record; the field that is wrong is named.
    """
    try:
        settings = run.settings
    except InputError as error:
        raise InputError(f"run {run.id}: {error.value}", error.wrong, error.right) from error
    rules = (
        (is_date(run.date), "date", "is no date of ISO 8601"),
        (0 <= run.context_tokens <= MAX_TOKENS, "context_tokens", "is no length of a prompt"),
        (len(run.round_s) > 0, "round_s", "has no round"),
        (all(seconds > 0 for seconds in run.round_s), "round_s", "has a time of 0 or less"),
        (len(run.accepted) == len(run.round_s), "accepted", "has not one count per round"),
        (
            all(0 <= count <= run.draft_length for count in run.accepted),
            "accepted",
            f"has a count outside 0 to {run.draft_length}",
        ),
        (
            not run.proposed
            or (settings.strategy in DRAFTED and len(run.proposed) == len(run.round_s)),
            "proposed",
            "has not one count per round of a draft",
        ),
        (
            all(
                count in (0, run.draft_length) and taken <= count
                for count, taken in zip(run.proposed, run.accepted, strict=False)
            ),
            "proposed",
            f"has a count that is neither 0 nor {run.draft_length}, or below the accepted",
        ),
        (len(run.output) == run.tokens, "output", f"has not {run.tokens} tokens"),
        (
            all(seconds > 0 for seconds in run.host_work_s),
            "host_work_s",
            "has no time above 0",
        ),
        (
            run.distinct_experts == 0.0 or run.distinct_experts >= 1.0,
            "distinct_experts",
            "is below 1",
        ),
        (
            len(run.commits) == (len(run.round_s) if run.block else 0),
            "commits",
            "has not one count per round of diffusion",
        ),
        (
            all(0 <= count <= run.block for count in run.commits),
            "commits",
            f"has a count outside 0 to {run.block}",
        ),
        (
            len(run.new_shapes) in (0, len(run.commits)),
            "new_shapes",
            "says it not once per round of diffusion",
        ),
    )
    for holds, field, wrong in rules:
        if not holds:
            raise InputError(f"run {run.id}: {field}", wrong, "record the run again")
