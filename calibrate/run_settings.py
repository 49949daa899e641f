"""What distinguishes one real run from another of the same target: its strategy and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from model.errors import InputError, unknown_name
from model.network.sublayers import Half, Sublayer
from model.progress.acceptance import MAX_DRAFT_LENGTH
from model.strategies.plain import MAX_BATCH

STRATEGIES = (
    *("plain", "awaited", "speculative", "draft-head", "layer-skip", "prompt-lookup", "batch"),
    *("canvas", "diffusion"),
)
DRAFTED = ("speculative", "draft-head", "layer-skip", "prompt-lookup")
"""Strategies whose rounds guess and verify."""
BY_MLX_VLM = ("draft-head", "diffusion")
"""Strategies whose loops are those of mlx-vlm, which is optional; mlx-lm runs the others."""
WARM_ROUNDS = 2
"""Rounds of each loop that run before the clock starts."""

MOST_CANVAS = 4096
MOST_NGRAM = 16
MOST_SEED = 2**53


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A strategy and its settings; what a strategy does not have stays at its default.

    Attributes:
        draft: The name of the draft model or of the trained head; "" without one.
        draft_length: Tokens drafted in a round; 0 without a draft.
        skipped_attention: Layers whose attention the self-draft leaves out.
        skipped_mlp: Layers whose MLP it leaves out.
        ngram: The longest run of tokens that prompt lookup searches for; 0 elsewhere.
        batch: Sequences side by side.
        canvas: Rows of a diffusion pass; 0 elsewhere.
        forced_acceptance: The probability with which a seeded coin accepts a draft token in the
            target's place; None where the target itself decides.
        seed: The coin's seed.
        block: Tokens of a block of diffusion; 0 elsewhere.
        steps: Denoising passes that fill each block on a fixed schedule; 0 without one.
        committed: Mean tokens that a denoising pass fixes, drawn from a seeded coin in place of the
            network's confidence; None without one.
        threshold: The confidence from which a token is fixed; None where it is the library's own,
            or where a schedule or a coin decides.

    Raises:
        InputError: a setting out of range, missing, or of another strategy.
    """

    strategy: str
    draft: str = ""
    draft_format: str = ""
    draft_length: int = 0
    skipped_attention: tuple[int, ...] = ()
    skipped_mlp: tuple[int, ...] = ()
    ngram: int = 0
    batch: int = 1
    canvas: int = 0
    forced_acceptance: float | None = None
    seed: int = 0
    block: int = 0
    steps: int = 0
    committed: float | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise unknown_name("strategy", self.strategy, STRATEGIES)
        for holds, field, wrong in self._rules():
            if not holds:
                right = "give what the strategy takes"
                raise InputError(f"{self.strategy}: {field}", wrong, right)

    def _rules(self) -> Iterator[tuple[bool, str, str]]:
        is_drafted = self.strategy in DRAFTED
        length = self.draft_length
        yield (
            0 <= length <= MAX_DRAFT_LENGTH and (length > 0) == is_drafted,
            "draft_length",
            f"is {length} of a {self.strategy} run",
        )
        skips = bool(self.skipped_attention or self.skipped_mlp)
        yield skips == (self.strategy == "layer-skip"), "skipped layers", f"are {self._skips}"
        ngram = self.ngram
        yield (
            0 <= ngram <= MOST_NGRAM and (ngram > 0) == (self.strategy == "prompt-lookup"),
            "ngram",
            f"is {ngram}",
        )
        batch = self.batch
        yield (
            1 <= batch <= MAX_BATCH and (batch > 1) <= (self.strategy == "batch"),
            "batch",
            f"is {batch}",
        )
        canvas = self.canvas
        yield (
            0 <= canvas <= MOST_CANVAS and (canvas > 0) == (self.strategy == "canvas"),
            "canvas",
            f"is {canvas}",
        )
        forced = self.forced_acceptance
        yield (
            forced is None or (is_drafted and 0.0 <= forced <= 1.0),
            "forced_acceptance",
            f"is {forced}",
        )
        yield 0 <= self.seed <= MOST_SEED, "seed", f"is {self.seed}"
        yield from self._diffusion_rules()

    def _diffusion_rules(self) -> Iterator[tuple[bool, str, str]]:
        block, committed, threshold = self.block, self.committed, self.threshold
        yield (
            0 <= block <= MOST_CANVAS and (block > 0) == (self.strategy == "diffusion"),
            "block",
            f"is {block}",
        )
        yield 0 <= self.steps <= block, "steps", f"are {self.steps} in a block of {block}"
        yield committed is None or 1.0 <= committed <= block, "committed", f"is {committed}"
        yield (
            threshold is None or (block > 0 and 0.0 <= threshold <= 1.0),
            "threshold",
            f"is {threshold}",
        )
        deciding = (self.steps > 0, committed is not None, threshold is not None)
        yield sum(deciding) <= 1, "steps, committed and threshold", "are more than one"

    @property
    def rows(self) -> int:
        """Rows of the target's pass in a round: a draft and one more, a batch, or a canvas."""
        return self.block or self.canvas or self.batch * (self.draft_length + 1)

    @property
    def _skips(self) -> str:
        return f"{list(self.skipped_attention)} and {list(self.skipped_mlp)}"

    @property
    def skipped(self) -> frozenset[Sublayer]:
        """The sublayers that the self-draft leaves out."""
        return frozenset(
            Sublayer(layer=layer, half=half)
            for half, layers in (
                (Half.MIXER, self.skipped_attention),
                (Half.MLP, self.skipped_mlp),
            )
            for layer in layers
        )

    @property
    def text(self) -> str:
        """The strategy and its settings in a few words.

        >>> Settings(strategy="prompt-lookup", draft_length=4, ngram=3, forced_acceptance=0.6).text
        'prompt-lookup k=4 ngram=3 forced 0.6'
        >>> Settings(strategy="diffusion", block=32, committed=4.5).text
        'diffusion block=32 committed=4.5'
        """
        parts = [self.strategy]
        if self.draft_length:
            parts.append(f"k={self.draft_length}")
        if self.draft:
            kind = "head" if self.strategy == "draft-head" else "draft"
            parts.append(f"{kind} {self.draft} {self.draft_format}")
        if self.skipped:
            attention, mlp = self.skipped_attention, self.skipped_mlp
            halves = (
                f"{len(mlp)} layers"
                if attention == mlp
                else f"{len(attention)} attention and {len(mlp)} MLP"
            )
            parts.append(f"skips {halves}")
        for name in ("ngram", "canvas", "block", "steps", "committed", "threshold"):
            if value := getattr(self, name):
                parts.append(f"{name}={value:g}")
        if self.strategy == "batch":
            parts.append(f"batch={self.batch}")
        if self.forced_acceptance is not None:
            parts.append(f"forced {self.forced_acceptance:g}")
        return " ".join(parts)


def layer_skip(
    skipped: frozenset[Sublayer],
    draft_length: int,
    forced_acceptance: float | None = None,
    seed: int = 0,
) -> Settings:
    """The settings of a self-draft that leaves these sublayers out.

    Raises:
        InputError: none is left out, or a draft length or acceptance out of range.
    """

    def layers(half: Half) -> tuple[int, ...]:
        return tuple(sorted(each.layer for each in skipped if each.half is half))

    return Settings(
        strategy="layer-skip",
        draft_length=draft_length,
        skipped_attention=layers(Half.MIXER),
        skipped_mlp=layers(Half.MLP),
        forced_acceptance=forced_acceptance,
        seed=seed,
    )
