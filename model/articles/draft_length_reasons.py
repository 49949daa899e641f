"""What the published pair of speedups says of the verify pass, and which part of a round grew."""

from __future__ import annotations

from collections.abc import Mapping

from model.articles.bench import CONTEXT
from model.articles.claim import Figure, Panel, Word
from model.articles.published_pair import PublishedPair, VerifyCosts, rates
from model.machine.profile import Profile
from model.network.checkpoint import Checkpoint
from model.progress.acceptance import Acceptance
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative

MEASURED_DRAFT_COSTS = (5.1 / 38.7, 7.0 / 44.5)
"""Draft step over target step on the articles' laptop, from two runs published of it: tok/s of
Llama-3.1-8B over those of Llama-3.2-1B, both in 4 bits, mlx-lm 0.31.3
(github.com/robertlangdonn/ondevice-bench: RESULTS.md and results/run-6.json). Memory was short and
nothing controlled the heat, so their ratio is taken and not their speeds."""

MEASURED_DRAFT_COST = sum(MEASURED_DRAFT_COSTS) / 2.0
ACCEPTANCES = (0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8)
PER_ROW = 5.0 / 3.0
"""v(5) / v(3) of a pass whose every row costs the same: the most that one kernel takes for both."""

STEPS = 1000


def table_of_costs(pair: PublishedPair, draft_cost: float) -> Panel:
    """The verify costs that give both speedups, by acceptance, at the measured and modelled c."""
    figures: list[Figure] = []
    for acceptance in ACCEPTANCES:
        for c in (MEASURED_DRAFT_COST, draft_cost):
            costs = pair.costs_at(acceptance, draft_cost=c)
            named = ((f"v(3), c={c:.3f}", costs.three), (f"v(5), c={c:.3f}", costs.five))
            figures += [
                Figure(case=f"a = {acceptance:g}", name=name, value=value) for name, value in named
            ]
    return Panel(
        title="verify costs that give both speedups at one acceptance a, with the draft cost c "
        "measured on that laptop and the model's",
        figures=tuple(figures),
    )


def without_a_machine(pair: PublishedPair) -> str:
    """What follows from the two numbers alone."""
    free = VerifyCosts(three=1.0, five=1.0)
    two, four = pair.tokens(free, draft_cost=MEASURED_DRAFT_COST)
    impossible = rates(two, four) is Word.IMPOSSIBLE
    cannot = "cannot both be, as a longer draft never commits fewer" if impossible else "may be"
    least = min(pair.least_five_rows(three_rows=1.0, draft_cost=c) for c in MEASURED_DRAFT_COSTS)
    ratio = pair.two / pair.four
    return (
        f"If checking were free, the speedups would have taken {two:.2f} tokens a round at k=2 and "
        f"{four:.2f} at k=4, which {cannot}. Whatever was accepted, the pair itself puts a pass "
        f"of five rows at {least:.2f} plain passes or more "
        f"(v(5) >= {ratio:.1f} v(3) - {4.0 - 2.0 * ratio:.1f} c)."
    )


def costs_left(pair: PublishedPair, modelled: Mapping[str, VerifyCosts]) -> str:
    """The verify costs that one acceptance leaves, beside those of the model."""
    found = allowed(pair, draft_cost=MEASURED_DRAFT_COST)
    if not found:
        return "No pass whose rows cost at most the same each gives both at one acceptance."
    (low, cheap), (high, dear) = found[0], found[-1]
    by_model = "; ".join(
        f"{name} has {costs.three:.2f} and {costs.five:.2f}, "
        f"{beside(costs.five, cheap.five, dear.five)}"
        for name, costs in modelled.items()
    )
    return (
        f"One acceptance at every position, and rows that cost at most the same each, leave "
        f"acceptances of {low:.2f} to {high:.2f}, v(3) of {cheap.three:.2f} to {dear.three:.2f} "
        f"and v(5) of {cheap.five:.2f} to {dear.five:.2f} at the measured c of "
        f"{MEASURED_DRAFT_COST:.3f}. In the model, {by_model}."
    )


def beside(value: float, low: float, high: float) -> str:
    """A verify cost in words."""
    return "dearer" if value > high else "cheaper" if value < low else "as dear"


def allowed(pair: PublishedPair, *, draft_cost: float) -> list[tuple[float, VerifyCosts]]:
    """Acceptances at which a verify pass of no more than its rows' price gives both speedups."""
    grid = [step / STEPS for step in range(STEPS + 1)]
    costs = [pair.costs_at(acceptance, draft_cost=draft_cost) for acceptance in grid]
    return [(a, each) for a, each in zip(grid, costs, strict=True) if is_physical(each)]


def is_physical(costs: VerifyCosts) -> bool:
    """More rows never cost less, nor more than in proportion."""
    return 1.0 <= costs.three <= costs.five <= PER_ROW * costs.three


def needed_rates(pair: PublishedPair, modelled: Mapping[str, VerifyCosts]) -> str:
    """Which acceptance by position both speedups need with the model's v and the measured c."""
    parts = [
        f"{rates(*pair.tokens(costs, draft_cost=MEASURED_DRAFT_COST))} under {name}"
        for name, costs in modelled.items()
    ]
    return f"With the model's v at that c, the rates by position are {', '.join(parts)}."


def moved(
    target: Checkpoint, draft: Checkpoint, profile: Profile, acceptance: float | None
) -> list[str]:
    """What two more draft tokens bring and cost at an acceptance, in plain tokens and by part."""
    if acceptance is None:
        return []
    rate = Acceptance(by_position=(acceptance,))
    plain_s = float(Plain().round(target, profile.machine, CONTEXT).round_s)
    two, four = (
        Speculative(draft=draft, draft_length=length, acceptance=rate) for length in (2, 4)
    )
    before, after = (
        dict(each.round(target, profile.machine, CONTEXT).parts_s) for each in (two, four)
    )
    added = {name: float(after[name] - before[name]) / plain_s for name in after}
    parts = ", ".join(
        f"{name} {share:.2f}"
        for name, share in sorted(added.items(), key=lambda item: -item[1])
        if share >= 0.01
    )
    return [
        f"{profile.header.runtime}: at an acceptance of {acceptance:.2f} two more draft tokens "
        f"bring {four.tokens_per_pass - two.tokens_per_pass:.2f} tokens a round and cost "
        f"{sum(added.values()):.2f} ({parts})."
    ]
