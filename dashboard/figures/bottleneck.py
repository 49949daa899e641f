"""Where did the bottleneck go? The time of an output token by what it is spent on."""

from __future__ import annotations

from dashboard.answers import once, predicted
from dashboard.charts.bottleneck import token_times
from dashboard.figure import Figure, in_words
from dashboard.rows.strategies import cautions, fitting, part_rows, place, token_ms, total_rows
from dashboard.selection import Selection
from model.commands.answer import Answer
from model.commands.prediction_text import label
from model.cost.forward import Bound
from model.prediction.prediction import Prediction
from model.strategies.base import BOUND_OF_PART

SPENT_ON = {
    Bound.MEMORY: "reading memory",
    Bound.COMPUTE: "arithmetic",
    Bound.DRAFT: "drafting",
    Bound.OVERHEAD: "overhead",
}


@once
def bottleneck(selection: Selection) -> Figure:
    """The figure of a selection.

    Raises:
        InputError: as predicting it does.
    """
    answer = predicted(selection)
    shown = fitting(answer)
    totals = total_rows(shown)
    rows = part_rows(shown)
    return Figure(
        name="bottleneck",
        sentence=sentence(answer),
        chart=token_times(rows, totals),
        alternative=in_words(
            "Time per output token, by strategy", [row.in_words for row in totals]
        ),
        reading="A bar is a round over the tokens it commits: its parts sum to the time per output "
        "token. kv: the cache of keys and values of earlier tokens; growth: copying it as it "
        "grows; arithmetic: what does not hide behind the reading; dispatch: starting kernels; "
        "host and sync: waiting for the processor. Dashed line: plain decoding.",
        rows=rows,
        command=selection.predict(),
        where=place(answer),
        cautions=cautions(answer),
    )


def sentence(answer: Answer) -> str:
    """What a plain token's time goes into, and where each trick moves it."""
    plain, *others = fitting(answer)
    said = [f"**A plain token takes {token_ms(plain):.1f} ms:** {shares(plain)}."]
    moved = [each for each in others if each.strategy != "instead"]
    for each in moved:
        turn = "still mostly" if each.bound is plain.bound else "now mostly"
        what = "a token of each" if each.strategy == "batch" else "it"
        said.append(
            f"With {label(each)} {what} takes {token_ms(each):.1f} ms, {turn} "
            f"{SPENT_ON[each.bound]} "
            f"({100 * _spent(each)[each.bound] / each.round_s:.0f} %)."
        )
    return " ".join(said)


def shares(prediction: Prediction) -> str:
    """What the time goes into, the largest share first; less than half a per cent is left out."""
    spent = _spent(prediction)
    ranked = sorted(spent, key=lambda bound: spent[bound], reverse=True)
    return ", ".join(
        f"{SPENT_ON[bound]} {100 * spent[bound] / prediction.round_s:.0f} %"
        for bound in ranked
        if spent[bound] >= 0.005 * prediction.round_s
    )


def _spent(prediction: Prediction) -> dict[Bound, float]:
    spent_s = dict.fromkeys(Bound, 0.0)
    for part, part_s in prediction.parts_s:
        spent_s[BOUND_OF_PART[part]] += part_s
    return spent_s
