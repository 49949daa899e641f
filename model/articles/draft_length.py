r"""Claim: two draft tokens gain 20 %, four lose 25 %, with a 1B drafting for an 8B.

Each speedup is turned into the acceptance it took, under the kernels of the day and later ones
and in the formats that the article leaves open; then the two are asked whether one draft can have
had both. Where the prediction of the second from the first misses, it is the pair of numbers that
does not fit the model, and nothing is tuned until it does.
"""

from __future__ import annotations

from collections.abc import Sequence

from model.articles.bench import DRAFT, TARGET, Bench, loaded
from model.articles.claim import Article, Claim, Figure, Panel, Published, Verdict, Word, covers
from model.articles.draft_length_case import PAIR, Case, case_of
from model.articles.draft_length_reasons import (
    costs_left,
    moved,
    needed_rates,
    table_of_costs,
    without_a_machine,
)

FORMATS = (("4bit", "4bit"), ("8bit", "8bit"), ("4bit", "bf16"))
"""Of the target and of the draft; the first is what a 16 GB laptop would most likely hold."""


def examined(bench: Bench) -> Claim:
    """Both speedups under every runtime and format, and what they say without a machine."""
    cases = [
        case_of(profile, target, draft) for profile in bench.profiles for target, draft in FORMATS
    ]
    usual = cases[0]
    shown = list(dict.fromkeys((usual, cases[-len(FORMATS)])))
    modelled = {case.name: case.verify for case in shown}
    pair = (loaded(bench.then, TARGET, FORMATS[0][0]), loaded(bench.then, DRAFT, FORMATS[0][1]))
    return Claim(
        id="draft-length",
        title="Two draft tokens gain 20 %, four lose 25 % (1B drafting for 8B)",
        article=Article.SECOND,
        setting=bench.setting(
            "4bit", "which 8B and 1B", "formats", "prompts", "acceptance", "context", draft=DRAFT
        ),
        published=(
            Published(name="speedup k=2", value=PAIR.two),
            Published(name="speedup k=4", value=PAIR.four),
        ),
        predicted=(
            Panel(
                title="the acceptance a that each speedup took, and the speedup at k=4 with that "
                "of k=2; c is a draft step and v(M) a pass of M rows, in plain passes; rates are "
                "those by position that give both, and possible the share of draws in which any "
                "do; formats of target + draft; intervals leave out draws that have no acceptance",
                figures=tuple(figure for case in cases for figure in figures(case)),
            ),
            table_of_costs(PAIR, usual.draft_cost),
        ),
        verdict=verdict(usual),
        explanation=(
            without_a_machine(PAIR),
            costs_left(PAIR, modelled),
            needed_rates(PAIR, modelled),
            *(prediction_of_four(case) for case in shown),
            *told_apart(shown),
            *moved(*pair, bench.then, usual.acceptance[0]),
        ),
    )


def verdict(case: Case) -> Verdict:
    """Whether one acceptance gives both within the interval, or any rates by position do."""
    if not case.fits:
        return Verdict.CANNOT_TELL
    if covers(case.four_given_two_90, PAIR.four):
        return Verdict.AGREES
    return Verdict.CONTRADICTS if case.possible >= 0.05 else Verdict.INCONSISTENT


def figures(case: Case) -> list[Figure]:
    """One row of the table."""
    named = list(zip(("k=2: a", "k=4: a"), case.acceptance, case.acceptance_90, strict=True))
    return [
        Figure(case=case.name, name="c", value=case.draft_cost),
        Figure(case=case.name, name="v(3)", value=case.verify.three),
        Figure(case=case.name, name="v(5)", value=case.verify.five),
        *(
            Figure(
                case=case.name,
                name=name,
                value=value,
                interval_90=None if value is None else interval,
                word=Word.NO_ACCEPTANCE if value is None else None,
            )
            for name, value, interval in named
        ),
        Figure(
            case=case.name,
            name="k=4 from k=2",
            value=case.four_given_two,
            interval_90=None if case.four_given_two is None else case.four_given_two_90,
            word=Word.NO_ACCEPTANCE if case.four_given_two is None else None,
        ),
        Figure(case=case.name, name="rates", word=case.rates),
        Figure(case=case.name, name="possible", value=case.possible),
    ]


def prediction_of_four(case: Case) -> str:
    """The second published number predicted from the first."""
    if case.four_given_two is None or case.four_given_two_90 is None:
        return f"{case.name}: no acceptance gains {PAIR.two - 1.0:.0%} with two draft tokens."
    low, high = case.four_given_two_90
    inside = "inside" if covers(case.four_given_two_90, PAIR.four) else "outside"
    return (
        f"{case.name}: the acceptance that gives {PAIR.two:.2f} at two tokens predicts "
        f"{case.four_given_two:.2f} ({low:.2f} to {high:.2f}) at four; the published "
        f"{PAIR.four:.2f} is {inside}."
    )


def told_apart(cases: Sequence[Case]) -> list[str]:
    """Whether the published pair says which of the runtimes it was measured with."""
    inside = [covers(case.four_given_two_90, PAIR.four) for case in cases]
    if len(cases) < 2 or not all(inside):
        return []
    return ["The intervals are too wide for the pair to say which kernels it was measured with."]
