"""Claim: the target checks five tokens in one pass for about the price of making one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from model.articles.bench import CONTEXT, TARGET, Bench, loaded
from model.articles.claim import Article, Claim, Figure, Panel, Published, Verdict
from model.articles.estimates import pass_cost
from model.cost.forward import PassCost, forward_pass
from model.machine.profile import Profile
from model.prediction.memory import feasibility

FORMATS = ("bf16", "8bit", "4bit")
CHECKED = 5
ABOUT_ONE = 1.1
"""What still counts as about one: a tenth on top, which nobody would call a cost."""

SHOWN = 0.01
"""Parts that are named, in plain passes."""

PARTS: dict[str, Callable[[PassCost], float]] = {
    "reading weights": lambda cost: float(cost.weights_s),
    "reading the cache": lambda cost: float(cost.kv_s),
    "arithmetic beyond reading": lambda cost: float(cost.arithmetic_s),
    "dispatch": lambda cost: float(cost.dispatch_s),
}


def examined(bench: Bench) -> Claim:
    """A pass of five rows by format, runtime and machine."""
    profiles = bench.profiles if bench.contrast is None else (*bench.profiles, bench.contrast)
    figures = [
        figure for profile in profiles for bits in FORMATS for figure in row_figures(profile, bits)
    ]
    fives = [figure for figure in figures if figure.name == f"{CHECKED} rows"]
    return Claim(
        id="five-tokens",
        title="Checking five tokens costs about as much as making one",
        article=Article.FIRST,
        setting=bench.setting("bf16, 8bit, 4bit", "model", "format", "runtime", "context"),
        published=(Published(name="pass of 5 rows / plain pass", value=1.0),),
        predicted=(Panel(title="a pass of several rows, in plain passes", figures=tuple(figures)),),
        verdict=verdict(fives),
        explanation=(
            summary(fives),
            *(why(profile, bits) for profile in bench.profiles for bits in ("bf16", "4bit")),
            *too_large(bench.then),
        ),
    )


def row_figures(profile: Profile, bits: str) -> list[Figure]:
    """Passes of two, three and five rows, of one format on one machine."""
    target = loaded(profile, TARGET, bits)
    found: list[Figure] = []
    for rows in (2, 3, CHECKED):
        estimate = pass_cost(profile, target, rows=rows, context=CONTEXT)
        found.append(
            Figure(
                case=case_of(profile, bits),
                name=f"{rows} rows",
                value=estimate.value,
                interval_90=estimate.interval_90,
            )
        )
    return found


def case_of(profile: Profile, bits: str) -> str:
    """A format on a machine under a runtime."""
    chip, _, _ = profile.header.chip.partition(",")
    return f"{chip}, {profile.header.runtime}, {bits}"


def is_true(figure: Figure) -> bool:
    """Whether the estimate is about one."""
    return figure.value is not None and figure.value <= ABOUT_ONE


def is_possible(figure: Figure) -> bool:
    """Whether the interval reaches down to about one."""
    return figure.interval_90 is not None and figure.interval_90[0] <= ABOUT_ONE


def verdict(fives: Sequence[Figure]) -> Verdict:
    """Over every format and runtime that the article leaves open."""
    if all(is_true(figure) for figure in fives):
        return Verdict.AGREES
    return Verdict.DEPENDS if any(map(is_possible, fives)) else Verdict.CONTRADICTS


def summary(fives: Sequence[Figure]) -> str:
    """Where it holds, where it may, and where it is furthest off."""
    true = [figure.case for figure in fives if is_true(figure)]
    possible = [figure.case for figure in fives if is_possible(figure) and not is_true(figure)]
    worst = max(fives, key=lambda figure: figure.value or 0.0)
    held = f" ({'; '.join(true)})" if true else ""
    perhaps = f", is possible in {len(possible)} more ({'; '.join(possible)})" if possible else ""
    return (
        f"It holds in {len(true)} of {len(fives)} settings{held}{perhaps} and is furthest off in "
        f"{worst.case}: {worst.value:.2f} plain passes."
    )


def why(profile: Profile, bits: str) -> str:
    """Which part of the time the further rows added, and which of the rows."""
    target = loaded(profile, TARGET, bits)
    one, two, five = (
        forward_pass(target, profile.machine, rows=rows, context=CONTEXT)
        for rows in (1, 2, CHECKED)
    )
    whole = float(one.device_s)
    added = {name: (part(five) - part(one)) / whole for name, part in PARTS.items()}
    parts = ", ".join(
        f"{name} {share:+.2f}"
        for name, share in sorted(added.items(), key=lambda item: -item[1])
        if abs(share) >= SHOWN
    )
    second = float(two.device_s) / whole - 1.0
    further = float(five.device_s - two.device_s) / whole
    return (
        f"{case_of(profile, bits)}: the second row adds {second:.2f} plain passes, three more add "
        f"{further:.2f} ({parts})."
    )


def too_large(profile: Profile) -> list[str]:
    """Formats in which the target is priced though the machine could not hold it."""
    missing: list[str] = []
    for bits in FORMATS:
        target = loaded(profile, TARGET, bits)
        memory = feasibility(((target, 1),), profile.machine, context=CONTEXT)
        if not memory.fits:
            missing.append(f"An 8B in {bits} {memory.reason}: its ratio is that of its kernels.")
    return missing
