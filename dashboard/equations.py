"""What the theory is, in the words of the modules that compute it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import getmembers, isclass, isfunction
from typing import final

from dashboard.markup import DIRECTIVE, first_sentence, to_markdown

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "A pass": (
        "model.cost.forward",
        "model.machine.row_law",
        "model.machine.overlap",
        "model.cost.moe",
        "model.cost.cache_growth",
        "model.cost.pipeline",
        "model.network.selection",
    ),
    "Strategies": (
        "model.strategies.plain",
        "model.strategies.drafted",
        "model.strategies.speculative",
        "model.strategies.draft_head",
        "model.strategies.token_tree",
        "model.strategies.block_drafter",
        "model.strategies.layer_skip",
        "model.strategies.prompt_lookup",
        "model.strategies.block_diffusion",
    ),
    "Progress": (
        "model.progress.acceptance",
        "model.progress.skip_curve",
        "model.progress.diffusion",
        "calibrate.decoding.similarity",
        "calibrate.vlm.commits",
    ),
    "Answers": (
        "model.prediction.prediction",
        "model.prediction.round_costs",
        "model.prediction.break_even",
        "model.prediction.needed_range",
        "model.prediction.row_curve",
        "model.prediction.roofline",
        "model.planners.sublayers",
        "model.planners.diffusion",
    ),
    "Fit": (
        "calibrate.fit.law_fit",
        "calibrate.fit.curves",
        "calibrate.fit.scores",
        "calibrate.fit.overheads",
        "calibrate.fit.experts",
        "calibrate.fit.bootstrap",
        "calibrate.fit.published.joint_fit",
        "calibrate.fit.published.chip_effects",
        "model.machine.kernels.published_rates",
    ),
    "Validation": (
        "calibrate.published.beams",
        "calibrate.validation.progress",
        "calibrate.validation.whole_answer",
        "calibrate.validation.several_rows",
        "calibrate.validation.summary",
        "calibrate.audit.scaling",
    ),
}
"""The modules that state an equation, by what it is of."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A module, what it says first, and all of it with the equations of its members."""

    module: str
    title: str
    text: str


@cache
def described(module: str) -> Described:
    """A module in its own words."""
    loaded = import_module(module)
    text = loaded.__doc__ or ""
    members = [
        f"**{name}:** {to_markdown(member.__doc__)}"
        for name, member in getmembers(loaded, lambda each: isfunction(each) or isclass(each))
        if member.__module__ == module and DIRECTIVE in (member.__doc__ or "")
    ]
    return Described(
        module=module,
        title=first_sentence(text),
        text="\n\n".join([to_markdown(text), *members]),
    )
