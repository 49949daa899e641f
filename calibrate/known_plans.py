"""Which rounds of runs in one process met attention that an earlier run had planned.

MLX's CUDA back end has cuDNN plan attention once for each shape of queries and keys, tens of
milliseconds each, and keeps the plans used last (mlx 0.32, `cuda/scaled_dot_product_attention.cpp`:
256, or MLX_CUDA_SDPA_CACHE_SIZE). A decode alone in its process meets a new shape in every pass of
several rows, and so it is predicted. But runs of one grid begin at the same context, toss equal
coins, and each is warmed from its own start: where two have as many rows, the later one finds the
plans of the earlier. Nothing of the times is used here: coins and settings say every shape that
was met, so the runs are played again and a list of plans is kept as MLX keeps its own.

Networks whose heads are alike share plans, whatever their weight formats. Runs whose first round
cannot be told, for no coin decided it, are kept whole, and so are those whose caches lay in memory
as no others did, and those of mlx-vlm's loops. Of these block diffusion notes itself what it met
(:mod:`calibrate.vlm.attention_plans`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, final

from calibrate.coin import Coin
from calibrate.planned_attention import USUAL_PLANS, plans_attention, plans_kept
from calibrate.run_record import Run
from calibrate.run_settings import WARM_ROUNDS
from model.network.mixer import Attention
from model.network.target import load_target

LEAST_ROUNDS = 4
"""Rounds that a run must have left: two kinds, each with a quartile."""

Heads: TypeAlias = tuple[int, int, int]
Plan: TypeAlias = tuple[Heads, int, int]
"""Heads, rows of queries, and keys."""


@final
class Plans:
    """The plans that a process keeps: those used last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, None] = OrderedDict()

    def knew(self, plan: Hashable) -> bool:
        """Whether the plan was there already; now it is."""
        known = plan in self._kept
        self._kept[plan] = None
        self._kept.move_to_end(plan)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return known

    def knew_some(self, plans: Sequence[Hashable]) -> bool:
        """Whether one of them was there already; now all are."""
        return max([self.knew(plan) for plan in plans])


def alone(runs: Sequence[Run]) -> list[Run | None]:
    """Each run as it would have been alone in its process; None where too little is left of it.

    What is left are its last rounds, after the last one that met a known plan.
    """
    found: list[Run | None] = []
    plans, environment = Plans(USUAL_PLANS), None
    for run in runs:
        if run.environment != environment:
            plans, environment = Plans(plans_kept(run.environment)), run.environment
        acceptance = run.forced_acceptance
        # Of a loop of mlx-vlm it is not known what it asks for.
        whole = not plans_attention(run.environment) or run.plans_apart or bool(run.library)
        if whole or acceptance is None:
            found.append(run)
            continue
        for warmed in (1.0, acceptance):
            warm(run, warmed, plans)
        known = [plans.knew_some(met) for met in rounds_met(run)][1:]
        first = max((i + 1 for i, each in enumerate(known) if each), default=0)
        found.append(from_round(run, first) if len(known) - first >= LEAST_ROUNDS else None)
    return found


def warm(run: Run, acceptance: float, plans: Plans) -> None:
    """Meet what the warm-up before the run met."""
    if run.strategy == "prompt-lookup" and acceptance < 1.0:
        return  # warmed by plain decoding
    coin, tokens = Coin(acceptance, run.seed), 0
    met = Shapes(run)
    while tokens < WARM_ROUNDS * (run.draft_length + 1):
        accepted = coin.accepted(run.draft_length)
        for plan in met(accepted):
            plans.knew(plan)
        tokens += accepted + 1


def rounds_met(run: Run) -> Iterator[list[Plan]]:
    """The plans that each round asked for, the first, which is not listed, included."""
    met = Shapes(run)
    yield met(Coin(run.forced_acceptance or 0.0, run.seed).accepted(run.draft_length))
    for accepted in run.accepted:
        yield met(accepted)


@final
class Shapes:
    """What one round after another asks for, given how many draft tokens each accepts."""

    def __init__(self, run: Run) -> None:
        self._length = run.draft_length
        self._target = heads_of(run.target, run.target_format)
        drafts = run.strategy == "speculative"
        self._draft = heads_of(run.draft, run.draft_format) if drafts else self._target
        self._drafts = drafts or run.strategy == "layer-skip"
        self._cached = run.context_tokens - 1
        self._caught_up = True

    def __call__(self, accepted: int) -> list[Plan]:
        """The plans of a round that accepts so many draft tokens."""
        found: list[Plan] = []
        if self._drafts and not self._caught_up:
            found.append((self._draft, 2, self._cached + 1))
        rows = self._length + 1
        found.append((self._target, rows, self._cached + rows))
        self._cached += accepted + 1
        self._caught_up = accepted < self._length
        return found


def heads_of(network: str, format_name: str) -> Heads:
    """Query heads, key heads and their width, of the first layer with attention."""
    layers = load_target(network, format_name).architecture.layers
    mixer = next(each.mixer for each in layers if isinstance(each.mixer, Attention))
    return mixer.query_heads, mixer.kv_heads, mixer.head_dim


def from_round(run: Run, first: int) -> Run:
    """The run as if it had begun with a later round."""
    if not first:
        return run
    return replace(
        run,
        round_s=run.round_s[first:],
        accepted=run.accepted[first:],
        proposed=run.proposed[first:],
    )
