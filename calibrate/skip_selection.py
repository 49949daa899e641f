"""Which sublayers a self-draft leaves out: the middle layers, or those that change least.

Both selections of a share save the same time by the model's price of each sublayer at the
context, so that what differs between their drafts is how often they are right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from model.errors import InputError
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.sublayers import Sublayer, lent_caches, middle_block
from model.planners.factors_file import SublayerFactor
from model.planners.sublayers import Skippable, frontier, sublayer_times
from model.whole_file import replace_file

MIDDLE, SIMILARITY = "middle", "similarity"
SELECTIONS = (MIDDLE, SIMILARITY)


def least_changing(
    target: Checkpoint,
    machine: Machine,
    similarity: Mapping[Sublayer, float],
    *,
    fraction: float,
    context: float,
) -> frozenset[Sublayer]:
    """The sublayers that save at least what the middle `fraction` saves and change least.

    An exact knapsack (:mod:`model.planners.sublayers`): the weight of a sublayer is its predicted
    time at the context, its loss the logarithm of its similarity.

    Raises:
        InputError: a share that skips nothing or too much, or similarities that do not suffice.
    """
    saved_s = sublayer_times(target, machine, context=context)
    middle = middle_block(target.architecture, fraction)
    wanted_ps = sum(round(saved_s[each] * 1e12) for each in middle)
    kept = lent_caches(target.architecture)
    candidates = [
        Skippable(sublayer, saved_s[sublayer], similarity[sublayer])
        for sublayer in sorted(similarity)
        if sublayer in saved_s and sublayer not in kept
    ]
    for point in frontier(candidates):
        if point.saved_ps >= wanted_ps:
            return frozenset(candidates[index].sublayer for index in point.chosen)
    wrong = "saves more than the measured sublayers together"
    raise InputError(f"skip fraction {fraction:g}", wrong, "skip less")


def write_factors(path: Path, similarity: Mapping[Sublayer, float]) -> None:
    """Write similarities as acceptance factors, for `tokroof plan sublayers --factors`.

    That takes a similarity for the acceptance that is left when the sublayer is skipped, which
    is KnapSpec's assumption and no measurement.

    Raises:
        InputError: nothing can be written there.
    """
    rows = [
        asdict(SublayerFactor(layer=each.layer, half=each.half.value, acceptance_factor=value))
        for each, value in sorted(similarity.items())
    ]
    replace_file(path, json.dumps(rows, indent=1) + "\n")
