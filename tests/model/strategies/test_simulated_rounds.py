"""The closed forms of rounds against rounds that are drawn one by one, tokens and seconds."""

from __future__ import annotations

import numpy as np
import pytest

from model.cost.cache_growth import growth_s
from model.cost.forward import forward_pass
from model.cost.pipeline import awaited_s
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.progress.acceptance import Acceptance
from model.strategies.drafted import AbstractDrafted
from model.strategies.speculative import Speculative
from model.units import Array
from tests.model.drafts import CatchingUp
from tests.model.machines import HOST, flat_law, machine, small

DRAFT = small("bf16", num_hidden_layers=1)
TARGET = small("bf16", num_hidden_layers=8)
TILED = flat_law(bandwidth=1e10, flops=1e11, tile_rows=5.0)
LINEAR = flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0)
POSITIONS = [(1, (0.7,)), (3, (0.9, 0.6, 0.8)), (4, (0.8,)), (7, (0.95, 0.9)), (2, (0.0,))]
ROUNDS = 40_000


def counts(by_position: tuple[float, ...], length: int, sequences: int) -> Array:
    """Accepted tokens of rounds (first axis) and sequences: the run of successes."""
    positions = [by_position[min(i, len(by_position) - 1)] for i in range(length)]
    generator = np.random.default_rng(length)
    drawn = generator.random((ROUNDS, sequences, length)) < np.array(positions)
    return np.cumprod(drawn, axis=2).sum(axis=2)


def check(seconds: Array, tokens: Array, round_s: float, per_pass: float) -> None:
    """Means of rounds, of tokens and of time per token, to five standard errors.

    A round depends on the one before it, so the error is that of means over 100 rounds.
    """
    token_s = round_s / per_pass
    for drawn, expected, scale in (
        (seconds, round_s, round_s),
        (tokens, per_pass, per_pass),
        (seconds - token_s * tokens, 0.0, round_s),
    ):
        blocks = drawn.reshape(-1, 100).mean(axis=1)
        error = float(blocks.std()) / len(blocks) ** 0.5
        # One per cent is at least three standard errors, so the check can fail.
        assert error < 0.0034 * scale
        assert abs(float(blocks.mean()) - expected) <= 5 * error + 1e-9 * scale


def round_times(
    strategy: AbstractDrafted, head: Checkpoint, here: Machine, context: float
) -> Array:
    """Seconds of a round by the first draft pass's rows, from passes priced one by one."""
    length = strategy.draft_length
    verify = forward_pass(TARGET, here, rows=length + 1, context=context)
    one = forward_pass(head, here, rows=1, context=context)
    first = [forward_pass(head, here, rows=rows, context=context) for rows in range(1, length + 2)]
    passes = [[each, *[one] * (length - 1), verify] for each in first]
    return np.array([float(awaited_s(each, here.host.sync_s)) for each in passes])


@pytest.mark.parametrize(("length", "by_position"), POSITIONS)
def test_a_draft_model_catches_up_on_one_row_after_a_full_accept(
    length: int, by_position: tuple[float, ...]
) -> None:
    here, context = machine(LINEAR, host=HOST), 100.0
    strategy = Speculative(
        draft=DRAFT, draft_length=length, acceptance=Acceptance(by_position=by_position)
    )
    accepted = counts(by_position, length, 1)[:, 0]
    rows = np.where(np.concatenate(([0], accepted[:-1])) == length, 2, 1)
    room_s = sum(float(growth_s(each, here, context=context)) for each in (TARGET, DRAFT))
    seconds = round_times(strategy, DRAFT, here, context)[rows - 1]
    seconds = seconds + room_s * (accepted + 1)
    round_s = float(strategy.round(TARGET, here, context).round_s)
    check(seconds, accepted + 1.0, round_s, strategy.tokens_per_pass)


@pytest.mark.parametrize(("length", "by_position"), POSITIONS)
def test_a_trained_head_catches_up_on_every_token_of_the_round_before(
    length: int, by_position: tuple[float, ...]
) -> None:
    here, context = machine(TILED), 100.0
    strategy = CatchingUp(
        head=DRAFT, draft_length=length, acceptance=Acceptance(by_position=by_position)
    )
    accepted = counts(by_position, length, 1)[:, 0]
    rows = np.concatenate(([0], accepted[:-1])) + 1
    seconds = round_times(strategy, DRAFT, here, context)[rows - 1]
    seconds = seconds + float(growth_s(TARGET, here, context=context)) * (accepted + 1)
    round_s = float(strategy.round(TARGET, here, context).round_s)
    check(seconds, accepted + 1.0, round_s, strategy.tokens_per_pass)


@pytest.mark.parametrize(("length", "by_position"), POSITIONS)
def test_a_batch_pays_for_the_rows_that_its_sequences_catch_up_on(
    length: int, by_position: tuple[float, ...]
) -> None:
    """On a machine linear in rows the ragged first pass costs its rows, and so their mean.

    Elsewhere the mean over sequences stands between padding every sequence and ragged rows.
    """
    sequences, here = 5, machine(LINEAR)
    strategy = CatchingUp(
        head=DRAFT,
        draft_length=length,
        acceptance=Acceptance(by_position=by_position),
        sequences=sequences,
    )
    accepted = counts(by_position, length, sequences)
    rows = sequences + np.concatenate(([0], accepted.sum(axis=1)[:-1]))
    first_s = np.array(
        [0.0]
        + [
            float(forward_pass(DRAFT, here, rows=each, context=0).device_s)
            for each in range(1, sequences * (length + 1) + 1)
        ]
    )
    later_s = float(forward_pass(DRAFT, here, rows=sequences, context=0).device_s)
    verify_s = float(
        forward_pass(TARGET, here, rows=length + 1, context=0, sequences=sequences).device_s
    )
    seconds = first_s[rows] + (length - 1) * later_s + verify_s
    tokens = accepted.sum(axis=1) + float(sequences)
    round_s = float(strategy.round(TARGET, here, 0).round_s)
    check(seconds, tokens, round_s, sequences * strategy.tokens_per_pass)
