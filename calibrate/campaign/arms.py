"""An arm of a plan: a strategy with lists of its settings, each combination of which is a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import product
from typing import final

from calibrate.run_settings import STRATEGIES, Settings, layer_skip
from calibrate.vlm.heads import HEAD_FORMAT
from model.commands.diffusion_options import check_diffusion
from model.errors import InputError, unknown_name
from model.network.checkpoint import Checkpoint
from model.network.head_target import load_head
from model.network.sublayers import middle_block

SAME = "same"
OF_DRAFTS = ("draft_lengths", "acceptances")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "plain": (),
    "awaited": (),
    "speculative": ("draft", "draft_format", *OF_DRAFTS),
    "draft-head": ("head", "head_format", *OF_DRAFTS),
    "layer-skip": ("skips", *OF_DRAFTS),
    "prompt-lookup": ("ngrams", *OF_DRAFTS),
    "batch": ("batches",),
    "canvas": ("canvases",),
    "diffusion": ("blocks", "answers", "steps", "committed", "thresholds"),
}
"""What each strategy takes."""
NEEDED = ("draft", "head", "skips", "answers")
"""What a strategy that takes it cannot do without, where its settings would not tell."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedArm:
    """A strategy and lists of its settings; every combination is a run."""

    strategy: str
    draft: str = ""
    draft_format: str = ""
    draft_lengths: tuple[int, ...] = ()
    acceptances: tuple[float, ...] = ()
    skips: tuple[float, ...] = ()
    ngrams: tuple[int, ...] = ()
    batches: tuple[int, ...] = ()
    canvases: tuple[int, ...] = ()
    head: str = ""
    head_format: str = ""
    blocks: tuple[int, ...] = ()
    answers: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    committed: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = ()


def arm_settings(arm: PlannedArm, target: Checkpoint, seed: int) -> Iterator[Settings]:
    """Every combination of an arm's lists; a field that its strategy does not take is refused.

    The draft `same` stays that word: the target itself, whatever its name and format are.

    Raises:
        InputError: a setting that is missing, out of range or of another strategy, or a target
            that cannot denoise or is not the head's.
    """
    check_own(arm)
    if arm.strategy == "layer-skip":
        yield from skipping(arm, target, seed)
        return
    draft, draft_format = arm.draft, arm.draft_format
    if arm.strategy == "diffusion":
        check_diffusion(target)
    if arm.strategy == "draft-head":
        draft, draft_format = arm.head, arm.head_format or HEAD_FORMAT
        load_head(draft, draft_format, target)
    yield from combined(arm, draft, draft_format, seed)


def check_own(arm: PlannedArm) -> None:
    """Refuse what the strategy does not take, and what it lacks where its settings would not tell.

    Raises:
        InputError: such a field, or a strategy that is not known.
    """
    if arm.strategy not in FIELDS:
        raise unknown_name("strategy", arm.strategy, STRATEGIES)
    own = FIELDS[arm.strategy]
    given = [each.name for each in fields(arm) if getattr(arm, each.name)]
    for name in given:
        if name not in ("strategy", *own):
            takes = f"{arm.strategy} takes {', '.join(own) or 'no settings'}"
            raise InputError(f"{arm.strategy}: {name}", "is not its own", f"leave it out: {takes}")
    for name in NEEDED:
        if name in own and name not in given:
            raise InputError(f"{arm.strategy}: {name}", "is missing", "add it to the arm")
    if arm.draft == SAME and arm.draft_format:
        wrong = f"changes nothing where the draft is {SAME!r}"
        raise InputError("speculative: draft_format", wrong, "leave it out, or name a draft")
    if not all(answer >= 1 for answer in arm.answers):
        raise InputError("diffusion: answers", "is out of range", "give 1 or more tokens")


def skipping(arm: PlannedArm, target: Checkpoint, seed: int) -> Iterator[Settings]:
    """The middle layers are left out, as many as each share says."""
    forced: tuple[float | None, ...] = arm.acceptances or (None,)
    for share, acceptance, length in product(arm.skips, forced, arm.draft_lengths or (0,)):
        skipped = middle_block(target.architecture, share)
        yield layer_skip(skipped, length, acceptance, 0 if acceptance is None else seed)


def combined(arm: PlannedArm, draft: str, draft_format: str, seed: int) -> Iterator[Settings]:
    """All lists with one another; those of other strategies are empty."""
    forced: tuple[float | None, ...] = arm.acceptances or (None,)
    committed: tuple[float | None, ...] = arm.committed or (None,)
    thresholds: tuple[float | None, ...] = arm.thresholds or (None,)
    shapes = product(arm.ngrams or (0,), arm.batches or (1,), arm.canvases or (0,))
    blocks = product(arm.blocks or (0,), arm.steps or (0,), committed, thresholds)
    rounds = product(forced, arm.draft_lengths or (0,))
    for shape, of_block, of_round in product(shapes, blocks, rounds):
        ngram, batch, canvas = shape
        block, steps, count, threshold = of_block
        acceptance, length = of_round
        yield Settings(
            strategy=arm.strategy,
            draft=draft,
            draft_format=draft_format,
            draft_length=length,
            ngram=ngram,
            batch=batch,
            canvas=canvas,
            forced_acceptance=acceptance,
            seed=0 if acceptance is None and count is None else seed,
            block=block,
            steps=steps,
            committed=count,
            threshold=threshold,
        )
