"""Which trick pays here? Every strategy's speed, and whether the draft model is worth having."""

from __future__ import annotations

from dashboard.answers import once, predicted
from dashboard.charts.which_trick import speeds
from dashboard.figure import Figure, in_words, literally
from dashboard.rows.strategies import cautions, fitting, place, strategy_rows
from dashboard.selection import Selection
from model.commands.answer import Answer
from model.commands.prediction_text import described, label
from model.prediction.prediction import Prediction

NOT_TRICKS = ("plain", "batch", "instead")
"""A batch speeds up nobody's own answer, and another network gives another answer."""


@once
def which_trick(selection: Selection) -> Figure:
    """The figure of a selection.

    Raises:
        InputError: as predicting it does.
    """
    answer = predicted(selection)
    rows = strategy_rows(answer)
    return Figure(
        name="which-trick",
        sentence=f"{of_the_draft(answer)} {of_the_others(answer)}".strip(),
        chart=speeds(rows),
        alternative=in_words(
            "Speed with its 90 % interval, by strategy", [row.in_words for row in rows]
        ),
        reading="Dot: estimate. Bar: 90 % interval. Dotted: what could be reached, where nobody "
        "has said how often the guesses are right. Dashed line: plain decoding. The verdict "
        "compares both on the same draws of the machine's constants, so bars that overlap may "
        "still be a sure win.",
        rows=rows,
        command=selection.predict(),
        where=place(answer),
        cautions=cautions(answer),
    )


def of_the_draft(answer: Answer) -> str:
    """Whether the draft model pays, with how many tokens, and from which acceptance on."""
    if answer.draft is None:
        return ""
    name = answer.draft.architecture.name
    for need in answer.needs:
        if need.strategy == "speculative":
            return _unknown(name, need.needed_acceptance, need.draft_length)
    for refused in answer.refused:
        if refused.strategy == "speculative":
            return f"**{name} cannot draft here:** {literally(refused.reason)}."
    [found] = [each for each in answer.predictions if each.strategy == "speculative"]
    if found.speedup is None:
        return f"**{name} as a draft {found.memory.reason}.**"
    return f"**{_advice(found, name)}** {_numbers(found, answer.predictions[0])}"


def _advice(found: Prediction, name: str) -> str:
    length = found.settings["draft_length"]
    tokens = "1 draft token" if length == 1 else f"{length} draft tokens"
    return {
        "faster": f"Yes: draft with {name}, {tokens} a round.",
        "slower": f"No: drafting with {name} is slower, even at its best, {tokens} a round.",
    }.get(
        found.verdict, f"Cannot tell whether drafting with {name} pays, at best {tokens} a round."
    )


def _numbers(found: Prediction, plain: Prediction) -> str:
    low, high = found.speedup_interval_90 or (0.0, 0.0)
    return (
        f"That gives {found.tokens_per_s:.1f} tok/s where plain decoding gives "
        f"{plain.tokens_per_s:.1f}: {found.speedup:.2f} times as fast "
        f"(90 % interval {low:.2f} to {high:.2f})."
    )


def _unknown(name: str, needed: float | None, length: int | None) -> str:
    if needed is None:
        return f"**No: no acceptance makes {name} pay as a draft,** not even guesses always right."
    return (
        f"**It depends on how often {name} guesses right:** it pays from an acceptance of "
        f"{needed:.2f} (with k = {length}); set the acceptance to see the speed."
    )


def of_the_others(answer: Answer) -> str:
    """The best of the other tricks, if one is predicted to pay, and what the rest would need."""
    tricks = [
        each
        for each in fitting(answer)
        if each.strategy not in (*NOT_TRICKS, "speculative") and each.verdict == "faster"
    ]
    said: list[str] = []
    if tricks:
        best = max(tricks, key=lambda each: each.speedup or 0.0)
        said.append(f"{label(best)} would give {best.speedup:.2f} times plain decoding.")
    waiting = [
        f"{described(each.strategy, each.settings)} {each.needed_acceptance:.2f}"
        for each in answer.needs
        if each.strategy != "speculative" and each.needed_acceptance is not None
    ]
    if waiting:
        said.append(f"Acceptance that others would need: {', '.join(waiting)}.")
    return " ".join(said)
