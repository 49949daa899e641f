"""The list of rules, and the audit of a file of runs with all of them.

A rule's name begins with what a flag means: `impossible` where the numbers of a row contradict
each other or the machine, whatever happened; `suspicious` where an honest run could look so, but
most do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from calibrate.audit import baselines, copies, progress, rates, roof, scaling, series, slips
from calibrate.audit.groups import setting_key
from calibrate.published.run_row import PublishedRun


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A row that a rule objects to, and why."""

    id: str
    rule: str
    explanation: str


RUN_RULES: dict[str, Callable[[PublishedRun], str | None]] = {
    "impossible/speedup-above-progress": progress.speedup_above_progress,
    "impossible/progress-above-acceptance": progress.progress_above_acceptance,
    "impossible/progress-above-draft": progress.progress_above_draft,
    "impossible/progress-below-one": progress.progress_below_one,
    "impossible/above-nominal-bandwidth": roof.above_nominal_bandwidth,
    "impossible/speedup-against-rates": rates.speedup_against_rates,
    "impossible/batch-speedup-above-batch": rates.batch_speedup_above_batch,
    "impossible/percentage-for-probability": slips.percentage_for_probability,
    "impossible/active-above-all-parameters": slips.active_above_all,
    "impossible/bandwidth-unit": slips.bandwidth_slip,
    "impossible/memory-unit": slips.memory_slip,
    "impossible/size-unit": slips.size_slip,
    "suspicious/gain-without-acceptance": progress.gain_without_acceptance,
    "suspicious/baseline-of-one-stream": progress.baseline_of_one_stream,
    "suspicious/round-of-many-passes": progress.round_of_many_passes,
    "suspicious/above-measured-bandwidth": roof.above_measured_bandwidth,
    "suspicious/far-below-roof": roof.far_below_roof,
    "suspicious/free-first-round": rates.free_first_round,
}
"""Rules that look at one row alone, by name."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRule:
    """A rule that looks at a row beside the others that share one of its keys."""

    keys: Callable[[PublishedRun], Iterable[Hashable]]
    check: Callable[[PublishedRun, Sequence[PublishedRun]], str | None]


def one(key: Callable[[PublishedRun], Hashable | None]) -> Callable[[PublishedRun], list[Hashable]]:
    """A key or none, as the list that a group rule asks for."""

    def keys(run: PublishedRun) -> list[Hashable]:
        found = key(run)
        return [] if found is None else [found]

    return keys


GROUP_RULES = {
    "impossible/altered-copy": GroupRule(keys=copies.copy_keys, check=copies.altered_copy),
    "suspicious/copy": GroupRule(keys=copies.copy_keys, check=copies.copied),
    "suspicious/slow-baseline": GroupRule(keys=one(setting_key), check=baselines.slow_baseline),
    "suspicious/foreign-baseline": GroupRule(
        keys=one(setting_key), check=baselines.foreign_baseline
    ),
    "suspicious/slower-than-scaling": GroupRule(
        keys=one(scaling.series_key), check=scaling.slower_than_scaling
    ),
    "suspicious/slow-repeat": GroupRule(keys=one(series.repeat_key), check=series.slow_repeat),
    "suspicious/stream-above-plain": GroupRule(
        keys=one(series.batch_key), check=series.stream_above_plain
    ),
}
"""Rules that compare rows, by name."""


def audit(runs: Sequence[PublishedRun]) -> tuple[Flag, ...]:
    """Every flag of every rule, in the order of the runs."""
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for index, run in enumerate(runs):
        for name, check in RUN_RULES.items():
            explanation = check(run)
            if explanation is not None:
                found[index][name] = explanation
    for name, rule in GROUP_RULES.items():
        for index, explanation in objections(rule, runs):
            found[index].setdefault(name, explanation)
    return tuple(
        Flag(id=runs[index].id, rule=name, explanation=explanation)
        for index in sorted(found)
        for name, explanation in found[index].items()
    )


def objections(rule: GroupRule, runs: Sequence[PublishedRun]) -> Iterator[tuple[int, str]]:
    """What a group rule objects to, by the place of the run."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        for key in rule.keys(run):
            groups[key].append(index)
    for members in groups.values():
        if len(members) < 2:
            continue
        group = [runs[index] for index in members]
        for index in members:
            explanation = rule.check(runs[index], group)
            if explanation is not None:
                yield index, explanation
