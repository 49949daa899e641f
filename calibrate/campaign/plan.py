"""A plan of runs: a TOML file of stages, each a product of lists.

A stage names targets, formats and contexts, and arms: strategies with lists of settings. Every
network of a stage is decoded plainly and by every arm at every context,

.. code-block:: toml

    about = "What speculation costs"
    passes = 2             # how often all stages are gone through, at most (default: 1)

    [[stages]]
    targets = ["llama-3.1-8b"]
    formats = ["4bit", "8bit"]
    contexts = [128, 4096]
    tokens = 96        # at most, in each run (default: 64)
    limit_s = 2.0      # of each run's steady rounds; 0 for no limit (the default)
    weights = "random" # or "real", or "auto" (default: random)
    repeats = 4        # how often each run is made in a pass, at most (default: 1)
    agreement = 0.05   # enough once its two fastest makes agree within this (default: 0, never)

    [[stages.arms]]
    strategy = "speculative"   # awaited, speculative, layer-skip, prompt-lookup, batch, canvas
    draft = "llama-3.2-1b"     # speculative; "same" is the target itself
    draft_format = "4bit"      # (default: the target's)
    draft_lengths = [1, 2, 4]  # of whatever drafts
    acceptances = [0.6]        # forced; without it the target decides
    # skips = [0.25]  ngrams = [3]  batches = [4, 16]  canvases = [32]

    [[stages]]                 # what mlx-vlm runs has stages of its own
    targets = ["llada2.0-mini"]
    formats = ["4bit"]
    contexts = [128]

    [[stages.arms]]
    strategy = "diffusion"     # or draft-head
    blocks = [32, 64]
    answers = [128, 512]       # tokens of each answer, whatever the stage's tokens and limit are
    steps = [8]                # or committed = [4.0]  or thresholds = [0.9]
    # head = "qwen3.5-4b-mtp"  head_format = "bf16"  draft_lengths = [2]  acceptances = [0.6]

Stages are run in the order of the file, so the most telling ones come first. With an agreement
every run is made twice in each stage, and then again only until the typical rounds of its two
fastest makes, of whatever stage or process, differ by no more than that share of the shorter; those
made beside a host that was slow (:mod:`calibrate.host_witness`) do not count. Makes of one moment
agree because they share its disturbance: of a machine that is not one's own go through all stages
several times instead of repeating within one. The format of a folder with real weights is the one
that they are stored in. Beside a head the target is decoded plainly by mlx-vlm too, and beside
diffusion not at all, for such a network cannot.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import final

from calibrate.campaign.arms import SAME, PlannedArm, arm_settings
from calibrate.open_network import WEIGHTS
from calibrate.run_settings import BY_MLX_VLM, Settings
from model.commands.diffusion_options import check_answer
from model.errors import InputError
from model.network.target import load_target
from model.typed_json import record_from_json

LARGEST_BYTES = 1_000_000
MOST_RUNS = 100_000
MOST_PASSES = 100
SURELY_MADE = 2
"""Makes of a run before any can agree."""
PLAIN = Settings(strategy="plain")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Networks, contexts, and the arms that each of them is run with."""

    targets: tuple[str, ...]
    formats: tuple[str, ...]
    contexts: tuple[int, ...]
    arms: tuple[PlannedArm, ...] = ()
    tokens: int = 64
    limit_s: float = 0.0
    weights: str = "random"
    repeats: int = 1
    agreement: float = 0.0

    @property
    def by_mlx_vlm(self) -> bool:
        """Whether mlx-vlm runs its arms."""
        return any(arm.strategy in BY_MLX_VLM for arm in self.arms)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridPlan:
    """Stages in the order in which they are run, and the seed of every coin."""

    about: str
    stages: tuple[Stage, ...]
    seed: int = 0
    passes: int = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run: what is decoded, where from, by which settings, for how long, and by whom.

    Attributes:
        made_before: How often its stage has planned it already, in all passes; 0 of the run that
            ends a network.
        agreement: How near its two fastest makes are when one more is of no use; 0 for never.
    """

    target: str
    format_name: str
    weights: str
    context: int
    settings: Settings
    tokens: int
    limit_s: float
    made_before: int = 0
    agreement: float = 0.0
    by_mlx_vlm: bool = False

    @property
    def network(self) -> tuple[str, str, str]:
        """What has to be in memory."""
        return self.target, self.format_name, self.weights

    @property
    def draft(self) -> tuple[str, str, str] | None:
        """The draft that has to be in memory too; None where the target drafts, or nothing."""
        named = self.settings.draft
        if not named or named == SAME:
            return None
        return named, self.settings.draft_format or self.format_name, self.weights

    @property
    def recorded(self) -> Settings:
        """The settings as a record names them: with the draft's own name and format."""
        if self.settings.draft == SAME:
            return replace(self.settings, draft=self.target, draft_format=self.format_name)
        if self.draft is None:
            return self.settings
        return replace(self.settings, draft_format=self.draft[1])

    @property
    def text(self) -> str:
        """The run in a few words."""
        answer = f" answer={self.tokens}" if self.settings.block else ""
        return f"{self.target} {self.format_name} at {self.context}: {self.recorded.text}{answer}"


def shipped_plans() -> tuple[str, ...]:
    """Names of the plans that come with tokroof."""
    folder = files("calibrate") / "data" / "plans"
    names = (each.name for each in folder.iterdir() if each.name.endswith(".toml"))
    return tuple(sorted(name.removesuffix(".toml") for name in names))


def read_plan(spec: str) -> GridPlan:
    """The plan in a file, or a shipped one by its name.

    Raises:
        InputError: there is none, or it is no plan; the field that is wrong is named.
    """
    right = f"give a plan's TOML file or one of {', '.join(shipped_plans())}"
    try:
        if spec in shipped_plans():
            text = (files("calibrate") / "data" / "plans" / f"{spec}.toml").read_text("utf-8")
        elif Path(spec).stat().st_size > LARGEST_BYTES:
            raise InputError(spec, f"is larger than {LARGEST_BYTES / 1e6:.0f} MB", right)
        else:
            text = Path(spec).read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or f"is not TOML ({error})"
        raise InputError(f"plan {spec}", str(reason).lower(), right) from error
    plan = record_from_json(GridPlan, document, spec)
    if not 1 <= plan.passes <= MOST_PASSES:
        raise InputError(f"{spec}: passes", "are out of range", f"give 1 to {MOST_PASSES}")
    for number, stage in enumerate(plan.stages, start=1):
        check_stage(stage, plan.passes, f"{spec}: stage {number}")
    return plan


def check_stage(stage: Stage, passes: int, where: str) -> None:
    """Refuse a stage that has nothing to run, or numbers that no run can have.

    Raises:
        InputError: such a stage.
    """
    for name in ("targets", "formats", "contexts"):
        if not getattr(stage, name):
            raise InputError(f"{where}: {name}", "are none", "list one or more")
    if stage.weights not in WEIGHTS:
        right = f"one of {', '.join(WEIGHTS)}"
        raise InputError(f"{where}: weights {stage.weights!r}", "is unknown", right)
    strategies = {arm.strategy for arm in stage.arms}
    if stage.by_mlx_vlm and len(strategies) > 1:
        wrong = f"are {' and '.join(sorted(strategies))}"
        right = f"give {' and '.join(BY_MLX_VLM)} stages of their own"
        raise InputError(f"{where}: arms", wrong, right)
    rules = (
        (all(each >= 1 for each in stage.contexts), "contexts", "give 1 or more tokens"),
        (stage.tokens >= 3, "tokens", "give 3 or more"),
        (stage.limit_s >= 0.0, "limit_s", "give 0 for no limit, or seconds"),
        (1 <= stage.repeats <= 100, "repeats", "give 1 to 100"),
        (0.0 <= stage.agreement < 1.0, "agreement", "give 0 for all repeats, or a share below 1"),
    )
    for holds, name, right in rules:
        if not holds:
            raise InputError(f"{where}: {name}", "is out of range", right)
    makes = passes * stage.repeats
    if stage.agreement and makes <= SURELY_MADE:
        wrong = f"changes nothing where each run is made {makes} times"
        right = f"plan {SURELY_MADE + 1} repeats or passes, or leave it out"
        raise InputError(f"{where}: agreement {stage.agreement:g}", wrong, right)


def planned_runs(plan: GridPlan) -> tuple[PlannedRun, ...]:
    """All runs in the order in which they are made.

    The runs of one network are neighbours, and of these the runs of one context. Repeats and passes
    go there and back, so that a drift of the device meets all arms alike, and in a plan of one pass
    the first run of a network is made once more at its end: what it then differs by is the drift.

    Raises:
        InputError: a target that is not known, settings that cannot be, or too many runs.
    """
    runs: list[PlannedRun] = []
    for turn, stage in product(range(plan.passes), plan.stages):
        for target, format_name in product(stage.targets, stage.formats):
            own = network_runs(stage, target, format_name, plan.seed, turn)
            runs += own if plan.passes > 1 else [*own, own[0]]
            if len(runs) > MOST_RUNS:
                raise InputError(f"{len(runs)} runs", "are too many", f"plan up to {MOST_RUNS}")
    return tuple(runs)


def network_runs(
    stage: Stage, target: str, format_name: str, seed: int, turn: int
) -> list[PlannedRun]:
    """The runs of one network of a stage in one of the passes, context by context."""
    checkpoint = load_target(target, format_name)
    denoises = any(arm.strategy == "diffusion" for arm in stage.arms)
    decodes = [] if denoises else [(PLAIN, stage.tokens)]
    for arm in stage.arms:
        decodes += product(arm_settings(arm, checkpoint, seed), arm.answers or (stage.tokens,))
    runs: list[PlannedRun] = []
    if denoises:
        longest = max(tokens for _, tokens in decodes)
        for context in stage.contexts:
            check_answer(f"{target}: answer of", longest, checkpoint, context=context)
    for context, repeat in product(stage.contexts, range(stage.repeats)):
        runs += [
            PlannedRun(
                target=target,
                format_name=format_name,
                weights=stage.weights,
                context=context,
                settings=settings,
                tokens=tokens if settings.block else max(tokens, settings.draft_length + 2),
                limit_s=stage.limit_s,
                made_before=turn * stage.repeats + repeat,
                agreement=stage.agreement,
                by_mlx_vlm=stage.by_mlx_vlm,
            )
            for settings, tokens in decodes[:: 1 if (turn + repeat) % 2 == 0 else -1]
        ]
    return runs
