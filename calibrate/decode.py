"""Decoding for real, by any strategy, timed from outside.

mlx-lm reports its own speed, but its clock starts after the first token: in speculation the
prefill then pays for the first round, whose tokens are free. Here its generators are driven
directly. The tokens of one round arrive together, and a round is the time from one last token to
the next, so that the rounds add up to the time a person waits.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, final

import mlx.core as mx
from mlx_lm.generate import generation_stream

from calibrate.decoding.checks import check_prompt
from calibrate.decoding.expert_choice import distinct_experts, noted_choices, switches
from calibrate.decoding.loops import Arm, arm
from calibrate.decoding.start import Start
from calibrate.decoding.streams import Arrivals, Loop
from calibrate.environment import read_environment
from calibrate.host_witness import MOST_WAIT_S, HostWitness, host_work_s
from calibrate.mlx_device import resident
from calibrate.networks import Network
from calibrate.run_record import Run
from calibrate.run_settings import WARM_ROUNDS, Settings
from calibrate.timing import Clock

Progress: TypeAlias = Callable[[int, int], None]

WARM_PROMPT_TOKENS = 8
COUNTED_PROMPT_TOKENS = 257
"""Of a prompt that no cache keeps, before the rounds whose experts are counted."""
COUNTED_ROUNDS = 8
LEAST_ROUNDS = 8
"""Rounds that a run with a time limit has at least."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a run is timed.

    Attributes:
        clock: Seconds from any start.
        progress: Called after each round with the tokens decoded and wanted; what it costs is
            part of the next round, so let it be little.
        warm_up: Whether every shape of pass is run before the clock starts. Leave it out only if
            the same decode was just run.
        limit_s: Time after which the run ends early, once it has some rounds; None for none.
        host: Until it is quiet the rounds are not begun, at most for `MOST_WAIT_S`; None to begin
            at once.
    """

    clock: Clock = time.perf_counter
    progress: Progress | None = None
    warm_up: bool = True
    limit_s: float | None = None
    host: HostWitness | None = None


def decode(arm: Arm, start: Start, tokens: int, pace: Pace | None = None) -> Run:
    """Decode `tokens` tokens and record every steady round.

    Caches that the start keeps are used as they are; otherwise the first round reads the prompt.

    Raises:
        InputError: the prompt or the number of tokens cannot be used.
    """
    pace = pace or Pace()
    check_prompt(arm.target, start.tokens)
    arm.check(start.context, tokens)
    date = datetime.now(UTC)
    with resident():
        if pace.warm_up:
            warm(arm, start.apart())
        distinct = counted_experts(arm, start.apart())
        start = start.apart()
        mx.reset_peak_memory()
        if pace.host is not None:
            pace.host.await_quiet(MOST_WAIT_S)
        before_s = host_work_s()
        with contextlib.closing(arm.loop(start, tokens)) as arrivals:
            round_s, accepted, output = time_rounds(arrivals, tokens, pace)
        mx.synchronize(generation_stream)  # plain decoding has one more pass under way
        after_s = host_work_s()
    lookup = arm.lookup
    return Run(
        **identity(arm.target, arm.settings, date),
        context_tokens=start.context,
        context_filled=start.filled,
        plans_apart=start.is_apart,
        tokens=min(tokens, len(output)),
        round_s=tuple(round_s),
        accepted=tuple(accepted),
        proposed=tuple(lookup.proposed[1 : 1 + len(round_s)]) if lookup else (),
        output=tuple(output[:tokens]),
        matches_plain=None,
        library=arm.library,
        host_work_s=(before_s, after_s),
        distinct_experts=distinct,
    )


def identity(target: Network, settings: Settings, date: datetime) -> dict[str, Any]:
    """What a record says of a run that has just ended, beside what it decoded and measured."""
    return {
        "id": f"{date:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        "date": date.isoformat(timespec="seconds"),
        "target": target.name,
        "target_format": target.format_name,
        "target_weights": target.weights,
        "peak_memory_bytes": mx.get_peak_memory(),
        "environment": read_environment(),
        **asdict(settings),
    }


def decode_plain(
    network: Network, prompt_tokens: Sequence[int], tokens: int, pace: Pace | None = None
) -> Run:
    """Decode one token a pass; mlx-lm builds the next pass while this one runs."""
    return decode(arm(network, Settings(strategy="plain")), Start(prompt_tokens), tokens, pace)


def decode_speculative(
    target: Network,
    draft: Network,
    prompt_tokens: Sequence[int],
    tokens: int,
    draft_length: int,
    pace: Pace | None = None,
) -> Run:
    """Draft `draft_length` tokens, verify them in one pass of the target, keep the equal ones.

    Raises:
        InputError: also if the two do not share a vocabulary, or a cache cannot be rolled back.
    """
    settings = speculation(draft, draft_length)
    return decode(arm(target, settings, draft), Start(prompt_tokens), tokens, pace)


def speculation(
    draft: Network, draft_length: int, forced_acceptance: float | None = None, seed: int = 0
) -> Settings:
    """The settings of speculation with a draft model."""
    return Settings(
        strategy="speculative",
        draft=draft.name,
        draft_format=draft.format_name,
        draft_length=draft_length,
        forced_acceptance=forced_acceptance,
        seed=seed,
    )


def warm(arm: Arm, start: Start) -> None:
    """Run each shape of pass: the first of its kind compiles kernels and allocates.

    From the start itself where its caches are kept, for attention has other kernels at other
    lengths; else from the last tokens of the prompt.
    """
    begin = short_start(arm, start, WARM_PROMPT_TOKENS)
    for loop in arm.warm_loops:
        _run(loop, begin, WARM_ROUNDS * (arm.settings.draft_length + 1))
    mx.synchronize(generation_stream)


def counted_experts(arm: Arm, start: Start) -> float:
    """The experts that the target's passes of several rows read, over some untimed rounds.

    A draft that shares the target's layers counts where its passes have as many rows: at draft
    length 1, after a round that accepted everything.
    """
    places, rows = switches(arm.target.model), arm.settings.rows
    if rows == 1 or not places:
        return 0.0
    begin = short_start(arm, start, COUNTED_PROMPT_TOKENS)
    tokens = (COUNTED_ROUNDS + 1) * (arm.settings.draft_length + 1)
    with (
        noted_choices(places) as choices,
        contextlib.closing(arm.loop(begin, tokens)) as arrivals,
    ):
        rounds = 0
        for _, from_draft in arrivals:
            if from_draft:
                continue
            if not rounds:
                choices.clear()  # the first round began with the prompt
            rounds += 1
            if rounds > COUNTED_ROUNDS:
                break
        mx.synchronize(generation_stream)
    return distinct_experts(choices, rows)


def short_start(arm: Arm, start: Start, tokens: int) -> Start:
    """The start itself where its caches are kept, else the last tokens of its prompt."""
    kept = all(start.holds(network) for network in arm.networks)
    return start if kept else start.ending(tokens)


def _run(loop: Loop, start: Start, tokens: int) -> None:
    with contextlib.closing(loop(start, tokens)) as arrivals:
        for _ in zip(range(tokens), arrivals, strict=False):
            pass


def time_rounds(
    arrivals: Arrivals, tokens: int, pace: Pace
) -> tuple[list[float], list[int], list[int]]:
    """Times and accepted counts of the steady rounds, and all tokens.

    A token of the target ends a round. The first round began before the prefill, so its end only
    starts the clock. The round that reaches `tokens` is followed to its end and listed: left
    out, long rounds would be missing more often than short ones.
    """
    round_s: list[float] = []
    accepted: list[int] = []
    output: list[int] = []
    started: float | None = None
    spent_s, count = 0.0, 0
    for token, from_draft in arrivals:
        output.append(token)
        if from_draft:
            count += 1
            continue
        ended = pace.clock()
        if started is not None:
            round_s.append(ended - started)
            accepted.append(count)
            spent_s += ended - started
        if pace.progress is not None:
            pace.progress(min(len(output), tokens), tokens)
        timed_out = pace.limit_s is not None and spent_s >= pace.limit_s
        if len(output) >= tokens or (timed_out and len(round_s) >= LEAST_ROUNDS):
            break
        started, count = ended, 0
    return round_s, accepted, output
