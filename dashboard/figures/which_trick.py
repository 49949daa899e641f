"""Which trick pays here? Every strategy's speed, and whether the draft model is worth having."""

from __future__ import annotations

from dashboard.answers import once, predicted
from dashboard.charts.which_trick import speeds
from dashboard.drafts import MOST_NAMED, likely_drafts
from dashboard.figure import Figure, in_words, literally
from dashboard.rows.strategies import cautions, fitting, place, strategy_rows
from dashboard.selection import Selection
from model.commands.answer import Answer
from model.commands.break_even_answer import DEFAULT_LENGTHS
from model.commands.prediction_text import described, label
from model.prediction.need import need
from model.prediction.prediction import Prediction
from model.progress.acceptance import Acceptance
from model.strategies.speculative import Speculative

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
        sentence="\n\n".join(
            filter(None, (of_the_draft(answer, selection), of_the_others(answer)))
        ),
        chart=speeds(rows),
        alternative=in_words(
            "Speed with its 90 % interval, by strategy", [row.in_words for row in rows]
        ),
        reading="Dot: estimate. Bar: 90 % interval. Dotted: what could be reached, where nobody "
        "has said how often the guesses are right. Dashed line: plain decoding. k: draft tokens a "
        "round. batch: B answers at the same time, together so fast. instead: another network in "
        "the target's place. What errs alike in both speeds cancels in the verdict, so bars that "
        "overlap may still be a sure win.",
        rows=rows,
        command=selection.predict(),
        where=place(answer),
        cautions=cautions(answer),
    )


def of_the_draft(answer: Answer, selection: Selection) -> str:
    """Whether the draft model pays, with how many tokens, and from which acceptance on."""
    if answer.draft is None:
        return of_no_draft(selection.target)
    name = answer.draft.architecture.name
    for waiting in answer.needs:
        if waiting.strategy == "speculative":
            return _unknown(name, waiting.needed_acceptance, waiting.draft_length)
    for refused in answer.refused:
        if refused.strategy == "speculative":
            return (
                f"**{name} cannot draft here:** {literally(refused.reason)}. "
                f"{of_drafts(selection.target)}"
            ).strip()
    [(found, strategy)] = [
        (prediction, each.strategy)
        for prediction, each in zip(answer.predictions, answer.answerable, strict=True)
        if isinstance(each.strategy, Speculative)
    ]
    if found.speedup is None:
        return f"**{name} as a draft {found.memory.reason}.**"
    return (
        f"**{_advice(found, name)}** {of_acceptance(strategy.acceptance, selection)} "
        f"{_numbers(found, answer.predictions[0])} {of_the_least(answer, strategy)}"
    )


def of_no_draft(target: str) -> str:
    """What to choose, where no draft is chosen."""
    return f"**No draft model is chosen.** {of_drafts(target)}".strip()


def of_drafts(target: str) -> str:
    """The shipped models that could draft for a target; nothing where it would be fetched."""
    names = likely_drafts(target)
    if not names:
        return ""
    return f"These could draft for {literally(target)}: {', '.join(names[:MOST_NAMED])}."


def of_acceptance(acceptance: Acceptance, selection: Selection) -> str:
    """What the numbers that follow take for granted."""
    shares = ", ".join(share(rate) for rate in acceptance.by_position)
    if not selection.acceptance:
        return f"With {shares} of its guesses accepted, as published of {selection.task} texts,"
    if len(acceptance.by_position) > 1:
        return f"With {shares} of its first, second, ... guesses accepted,"
    return f"If {shares} of its guesses are accepted,"


def share(probability: float) -> str:
    """A probability as per cent that no line of text parts from its sign."""
    return f"{100 * probability:.0f}\u00a0%"


def of_the_least(answer: Answer, strategy: Speculative) -> str:
    """From which acceptance on any draft length pays; it does not depend on the one that is had."""
    never = Acceptance(by_position=(0.0,))
    found = need(
        strategy.with_length(1).with_acceptance(never),
        answer.target,
        answer.choice.profile.machine,
        context=answer.context,
        draft_lengths=DEFAULT_LENGTHS,
        reason="",
    )
    if found.needed_acceptance is None:
        return "No acceptance would make it pay."
    k = found.draft_length
    tokens = "1 draft token" if k == 1 else f"{k} draft tokens"
    return f"It pays from {share(found.needed_acceptance)} on, with {tokens} a round."


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
        f"that gives {found.tokens_per_s:.1f} tok/s where plain decoding gives "
        f"{plain.tokens_per_s:.1f}: {found.speedup:.2f} times as fast "
        f"(90\u00a0% interval {low:.2f} to {high:.2f})."
    )


def _unknown(name: str, needed: float | None, length: int | None) -> str:
    if needed is None:
        return f"**No: no acceptance makes {name} pay as a draft,** not even guesses always right."
    return (
        f"**It depends on how often {name} guesses right:** it pays from {share(needed)} on "
        f"(with k = {length}); set the acceptance to see the speed."
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
        said.append(f"**{label(best)} would give {best.speedup:.2f} times plain decoding.**")
    waiting = [
        f"{described(each.strategy, each.settings)} from {share(each.needed_acceptance)}"
        for each in answer.needs
        if each.strategy != "speculative" and each.needed_acceptance is not None
    ]
    if waiting:
        said.append(
            "Other tricks pay once enough of their guesses are accepted (say how many under More): "
            f"{', '.join(waiting)}."
        )
    return " ".join(said)
