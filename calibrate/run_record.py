"""One real run: what was decoded, when each round ended, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise
from statistics import fmean
from typing import final

from calibrate.environment import Environment
from calibrate.planned_attention import own_attention, plans_attention
from calibrate.round_times import block_means, by_evenness, mean_quartile, pass_kinds, quartile
from calibrate.run_rules import check_run
from calibrate.run_settings import Settings
from model.machine.kernels.attention import leaves_scores


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A decode of `tokens` tokens, and its steady rounds.

    A round is one pass of the target: one token and, where there is a draft, the accepted draft
    tokens before it. The first round holds the prefill and the warm-up and is not listed. No
    listed round was cut short: the loop is asked for more tokens than are wanted, and its last
    round is seen to its end. Of block diffusion each pass of the answer is a round, those that only
    write a finished block to the cache included; the prefill is not. Fields with a default were
    added later; older files lack them.

    Attributes:
        date: UTC, ISO 8601.
        strategy: One of `calibrate.run_settings.STRATEGIES`; "awaited" is plain, but each pass is
            waited for, and "canvas" commits one token a pass, the least that diffusion can.
        target_weights: "random" or "real"; the cost of a pass is the same.
        context_tokens: The length of the prompt.
        tokens: How many were decoded; of a batch, in each sequence.
        round_s: Wall time of each steady round, from one last token to the next.
        accepted: Draft tokens that were accepted in each of these rounds.
        output: The tokens decoded, the first round's included; of a batch, its first sequence's.
        matches_plain: Whether the output is plain decoding's; None if it was not compared.
        peak_memory_bytes: The most that MLX held during the run.
        proposed: Draft tokens that were proposed in each round; empty where all rounds propose
            `draft_length`, as all but those of prompt lookup do.
        context_filled: Whether the caches held random keys and values instead of the prompt's.
        plans_apart: Whether its caches lay in memory as those of no run before it, so that it met
            no attention plan of theirs (:mod:`calibrate.decoding.start`).
        commits: Of block diffusion, tokens that each round fixed: 0 where it wrote a finished block
            to the cache. What lies behind the end of the answer in its last block counts.
        new_shapes: Of block diffusion on CUDA, whether each round met attention of a shape that
            nothing in the process had met before; empty where shapes are not planned. Older
            records without a library's attention may state it, and it means nothing there.
        host_work_s: What a fixed piece of the host's work took just before the rounds and just
            after (:mod:`calibrate.host_witness`).
        distinct_experts: How many different experts the target's pass of several rows read in the
            mean layer (:mod:`calibrate.decoding.expert_choice`); 0 where that was not counted.
        library: The library whose loop it was, with its version; "" for mlx-lm, whose version is
            in the environment.

    The other attributes are those of `calibrate.run_settings.Settings`.
    """

    id: str
    date: str
    strategy: str
    target: str
    target_format: str
    target_weights: str
    draft: str
    draft_format: str
    draft_length: int
    context_tokens: int
    tokens: int
    round_s: tuple[float, ...]
    accepted: tuple[int, ...]
    output: tuple[int, ...]
    matches_plain: bool | None
    peak_memory_bytes: int
    environment: Environment
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
    proposed: tuple[int, ...] = ()
    context_filled: bool = False
    plans_apart: bool = False
    commits: tuple[int, ...] = ()
    new_shapes: tuple[bool, ...] = ()
    library: str = ""
    host_work_s: tuple[float, ...] = ()
    distinct_experts: float = 0.0

    def __post_init__(self) -> None:
        check_run(self)

    @property
    def settings(self) -> Settings:
        """The strategy and its settings, without what they were run on."""
        return Settings(**{each.name: getattr(self, each.name) for each in fields(Settings)})

    @property
    def text(self) -> str:
        """The strategy and its settings in a few words, and the answer's length where it tells."""
        return f"{self.settings.text} answer={self.tokens}" if self.block else self.settings.text

    @property
    def drafting(self) -> tuple[int, ...]:
        """The accepted counts of the rounds that had a draft."""
        if not self.proposed:
            return self.accepted if self.draft_length else ()
        pairs = zip(self.accepted, self.proposed, strict=True)
        return tuple(accepted for accepted, proposed in pairs if proposed)

    @property
    def drafted(self) -> int:
        """Draft tokens that were proposed in the steady rounds."""
        return self.draft_length * len(self.drafting)

    @property
    def accepted_fraction(self) -> float | None:
        """Accepted over drafted; None without a draft. Not the acceptance α: see the next."""
        return sum(self.accepted) / self.drafted if self.drafted else None

    @property
    def acceptance_by_position(self) -> tuple[float, ...]:
        """How often the draft token at each position was accepted, given all before it were.

        Entry i is (rounds with more than i accepted) / (rounds with at least i accepted). A
        position that was never reached ends the list.
        """
        reached = [sum(count >= i for count in self.drafting) for i in range(self.draft_length + 1)]
        return tuple(after / before for before, after in pairwise(reached) if before)

    @property
    def tokens_per_pass(self) -> float:
        """Output tokens per target pass, the target's own token included; 1 without a draft.

        Of block diffusion, tokens of the answer over all passes: what was fixed behind its end is
        not counted, and passes that only write to the cache are.
        """
        if self.block:
            return self.tokens / len(self.round_s)
        return 1.0 + fmean(self.accepted)

    @property
    def committed_per_pass(self) -> float | None:
        """Tokens that a denoising pass fixed, on average; None without block diffusion."""
        denoising = [count for count in self.commits if count]
        return fmean(denoising) if denoising else None

    @property
    def match(self) -> float:
        """The share of rounds that had a draft."""
        return len(self.drafting) / len(self.accepted)

    @property
    def typical_round_s(self) -> float:
        """The time of a round on an undisturbed machine: a lower quartile, weighted by class.

        Whatever else a computer does only ever adds time, so the lower quartile is nearer to
        what the decode itself takes than the median. Two things keep it honest. Tokens of a
        pipelined loop arrive in bursts, so it is taken over means of 8 rounds in a row. And
        rounds of a draft are of two kinds, of which each has a quartile of its own. After a round
        that accepted everything the next draft pass has two rows, for mlx-lm then feeds the last
        draft token together with the target's; the kind of the first listed round is not known,
        and it is left out unless it is the only one. Rounds of prompt lookup have a draft or none.
        Where verifying leaves scores in memory, rounds over odd and even contexts differ too.
        Each block of diffusion has another context, and a kind of its own, and so have the passes
        that write, and those that met new shapes where shapes are planned.
        """
        if self.block:
            planned = self.new_shapes if plans_attention(self.environment) else ()
            return mean_quartile(pass_kinds(self.commits, planned), self.round_s)
        if not self.draft_length:
            return quartile(block_means(self.round_s))
        if self.strategy == "prompt-lookup":
            kinds = [bool(count) for count in self.proposed] or [True] * len(self.round_s)
            return mean_quartile(self._by_evenness(kinds), self.round_s)
        if len(self.round_s) == 1:
            return self.round_s[0]
        full = [False, *(previous == self.draft_length for previous in self.accepted[:-1])]
        return mean_quartile(self._by_evenness(full)[1:], self.round_s[1:])

    def _by_evenness(self, kinds: Sequence[int]) -> Sequence[int]:
        """These kinds of drafted rounds, told apart further where verifying leaves scores."""
        own = own_attention(self.environment)
        if not leaves_scores(own) or self.draft_length < own.most_rows:
            return kinds
        # How many tokens the first round had is not known, which swaps odd and even at most.
        kept = accumulate((count + 1 for count in self.accepted[:-1]), initial=0)
        # A round without a draft has one row, and its scores stay in a kernel.
        lengths = self.proposed or [self.draft_length] * len(self.accepted)
        keys = [each + length if length else 0 for each, length in zip(kept, lengths, strict=True)]
        return by_evenness(kinds, keys)

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of an undisturbed machine: `tokens_per_pass / typical_round_s`.

        Those of all sequences of a batch together.

        It passes over the growth of the cache every 256 tokens and over whatever else the
        computer did. Compare predictions with this number.
        """
        return self.batch * self.tokens_per_pass / self.typical_round_s

    @property
    def mean_tokens_per_s(self) -> float:
        """Tokens per second that were really had: all tokens over all time of the steady rounds.

        Far below `tokens_per_s`, the machine was disturbed, throttled, or growing its cache.
        """
        return self.batch * self.tokens_per_pass * len(self.round_s) / sum(self.round_s)
