"""Claim: a draft of the target's own layers never wins, in none of 24 settings; 0.8 at best.

The article names two models, four shares of skipped layers and three draft lengths without
saying which; the models, shares and lengths here stand in for them. No cell above 0.8 bounds the
acceptance of every cell from above, and the model bounds from below what a win would have taken.
"""

from __future__ import annotations

from model.articles.bench import CONTEXT, Bench, loaded
from model.articles.claim import Article, Claim, Figure, Panel, Published, Verdict, Word, gain
from model.articles.layer_skip_cells import (
    BEST_SPEEDUP,
    FRACTIONS,
    LENGTHS,
    MODELS,
    Cell,
    cells_of,
    drawn_wins,
    skipping,
)
from model.machine.profile import Profile
from model.prediction.prediction import Prediction, predict
from model.progress.acceptance import Acceptance

HALF, HALF_ACCEPTANCE = 0.5, 0.06


def examined(bench: Bench) -> Claim:
    """Every cell under both runtimes, and the one whose acceptance is published."""
    cells = [
        cell for model in MODELS for profile in bench.profiles for cell in cells_of(profile, model)
    ]
    halves = {profile.header.runtime: half_predictions(profile) for profile in bench.profiles}
    return Claim(
        id="layer-skip",
        title="Drafting with a part of the own layers never wins: 0.8 at best in 24 settings",
        article=Article.SECOND,
        setting=bench.setting(
            "4bit",
            *("both models", "format", "three of four shares", "draft lengths", "acceptances"),
            target=" and ".join(MODELS),
        ),
        published=(
            Published(name="best speedup of 24", value=BEST_SPEEDUP),
            Published(name="acceptance at half the layers", value=HALF_ACCEPTANCE),
        ),
        predicted=(
            Panel(
                title="model, share of layers skipped, draft length; by runtime the acceptance "
                "that a win needs, the speedup of a draft that is always right, and the acceptance "
                "that gives the published 0.8",
                figures=tuple(figure for cell in by_name(cells) for figure in cell_figures(cell)),
            ),
            half_panel(halves),
        ),
        verdict=verdict(halves[bench.then.header.runtime]),
        explanation=(
            *(counted(profile, cells) for profile in bench.profiles),
            implied([cell for cell in cells if cell.runtime == bench.then.header.runtime]),
            half_sentence(halves[bench.then.header.runtime]),
        ),
    )


def verdict(predictions: list[Prediction]) -> Verdict:
    """Of the settings whose acceptance is published; no other can be told."""
    verdicts = {prediction.verdict for prediction in predictions}
    if verdicts == {"slower"}:
        return Verdict.AGREES
    return Verdict.CONTRADICTS if "faster" in verdicts else Verdict.CANNOT_TELL


def by_name(cells: list[Cell]) -> list[Cell]:
    """Cells in the order in which they are read, the runtimes of one setting together."""
    names = list(dict.fromkeys(cell.name for cell in cells))
    return sorted(cells, key=lambda cell: names.index(cell.name))


def cell_figures(cell: Cell) -> list[Figure]:
    """What one runtime says of one cell."""
    needed, allowed = cell.plan.needed_acceptance, cell.allowed_acceptance
    short = cell.runtime.removeprefix("mlx-")
    return [
        Figure(
            case=cell.name,
            name=f"needs {short}",
            value=needed,
            word=Word.NO_ACCEPTANCE if needed is None else None,
        ),
        Figure(case=cell.name, name=f"at most {short}", value=cell.plan.speedup_at_most),
        Figure(
            case=cell.name,
            name=f"0.8 at {short}",
            value=allowed,
            word=Word.NO_ACCEPTANCE if allowed is None else None,
        ),
    ]


def half_predictions(profile: Profile) -> list[Prediction]:
    """Both models at half of their layers with the published acceptance, at every length."""
    rate = Acceptance(by_position=(HALF_ACCEPTANCE,))
    return [
        predict(
            skipping(profile, model, HALF).with_length(length).with_acceptance(rate),
            loaded(profile, model, "4bit"),
            profile,
            context=CONTEXT,
        )
        for model in MODELS
        for length in LENGTHS
    ]


def half_panel(halves: dict[str, list[Prediction]]) -> Panel:
    """Speedups at half of the layers and 6 %."""
    names = [f"{model}, k={length}" for model in MODELS for length in LENGTHS]
    return Panel(
        title=f"speedup at half of the layers with an acceptance of {HALF_ACCEPTANCE:g}",
        figures=tuple(
            gain(name, runtime, each)
            for index, name in enumerate(names)
            for runtime, predictions in halves.items()
            for each in (predictions[index],)
        ),
    )


def counted(profile: Profile, cells: list[Cell]) -> str:
    """How many cells a draft that is always right would win, with the range over draws."""
    runtime = profile.header.runtime
    own = [cell for cell in cells if cell.runtime == runtime]
    needs = [each for cell in own if (each := cell.plan.needed_acceptance) is not None]
    drawn = drawn_wins(profile)
    spread = "" if drawn is None else f" ({drawn[0]:.0f} to {drawn[1]:.0f} over the draws)"
    least = f"; the easiest of them needs {min(needs):.2f}" if needs else ""
    return (
        f"{runtime}: {len(needs)} of {len(own)} settings{spread} could win at any acceptance"
        f"{least}."
    )


def implied(cells: list[Cell]) -> str:
    """What 0.8 at best says of the acceptances."""
    best = max(cells, key=lambda cell: cell.plan.speedup_at_most)
    first = min(cells, key=lambda cell: (cell.plan.skip_fraction, cell.plan.draft_length))
    shallow = [
        each
        for cell in cells
        if cell.plan.skip_fraction == FRACTIONS[0] and (each := cell.allowed_acceptance) is not None
    ]
    sentence = (
        f"{first.name} gives {first.plan.speedup_at_most:.2f} when every draft token is right: "
        "there the draft is too dear, whatever it guesses"
        if first.plan.needed_acceptance is None
        else f"{first.name} would win from {first.plan.needed_acceptance:.2f}"
    )
    if shallow:
        sentence += (
            f". If the best {BEST_SPEEDUP:g} was at {FRACTIONS[0]:g} skipped, the acceptance "
            f"there was {min(shallow):.2f} to {max(shallow):.2f} by draft length"
        )
    if best.allowed_acceptance is not None:
        sentence += (
            f"; at {best.plan.skip_fraction:g} skipped and k={best.plan.draft_length} it stayed "
            f"below {best.allowed_acceptance:.2f}"
        )
    return f"{cells[0].runtime}: {sentence}."


def half_sentence(predictions: list[Prediction]) -> str:
    """The published collapse, as a speed."""
    speeds = [each.speedup for each in predictions if each.speedup is not None]
    if not speeds:
        return "Half of the layers: the models do not fit."
    return (
        f"With {HALF_ACCEPTANCE:.0%} at half of the layers a round commits little more than one "
        f"token and still pays its drafts and the verify pass: {min(speeds):.2f} to "
        f"{max(speeds):.2f} of plain decoding by model and draft length. The verdict is on these "
        "settings: of the other shares no acceptance is published."
    )
