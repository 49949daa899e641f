"""Runs of one process share plans of attention: what each would have been alone."""

from __future__ import annotations

from dataclasses import replace

from calibrate.coin import Coin
from calibrate.known_plans import Plans, alone
from calibrate.run_record import Run
from tests.calibrate.test_run_timings import BLANK

LENGTH, ROUNDS, SEED, ACCEPTANCE = 4, 12, 7, 0.6


def forced(name: str, **changes: object) -> Run:
    """A run of `ROUNDS` rounds whose coin lay as it must, on a CUDA device."""
    coin = Coin(ACCEPTANCE, SEED)
    accepted = [coin.accepted(LENGTH) for _ in range(ROUNDS + 1)][1:]
    run = replace(
        BLANK,
        id=name,
        strategy="speculative",
        draft_length=LENGTH,
        context_tokens=128,
        round_s=(0.1,) * ROUNDS,
        accepted=tuple(accepted),
        proposed=(),
        forced_acceptance=ACCEPTANCE,
        seed=SEED,
        matches_plain=None,
        environment=replace(BLANK.environment, device="cuda"),
    )
    return replace(run, **changes)  # pyright: ignore[reportArgumentType]


def test_plans_used_last_are_kept() -> None:
    plans = Plans(2)
    first, second, third = (((8, 2, 64), 2, keys) for keys in (10, 11, 12))
    assert [plans.knew(each) for each in (first, second, first, third)] == [0, 0, 1, 0]
    assert not plans.knew(second)  # the one that was used least lately
    assert plans.knew(third)


def test_the_second_of_two_equal_runs_met_nothing_new() -> None:
    one, other = forced("one"), forced("other")
    first, second = alone([one, other])
    assert second is None
    assert first is not None
    assert 4 <= len(first.round_s) <= ROUNDS


def test_a_longer_run_keeps_what_lies_behind_the_shorter() -> None:
    coin = Coin(ACCEPTANCE, SEED)
    accepted = tuple(coin.accepted(LENGTH) for _ in range(3 * ROUNDS + 1))[1:]
    long = forced("long", accepted=accepted, round_s=(0.1,) * len(accepted))
    rest = alone([forced("short"), long])[1]
    assert rest is not None
    assert rest.accepted == accepted[ROUNDS:]
    assert len(rest.round_s) == len(rest.accepted)


def test_another_context_is_new() -> None:
    after = forced("after")
    assert alone([forced("far", context_tokens=4096), after])[1] == alone([after])[0]


def test_few_kept_plans_are_forgotten_between_runs() -> None:
    few = replace(forced("x").environment, mlx_variables=(("MLX_CUDA_SDPA_CACHE_SIZE", "2"),))
    one, other = forced("one", environment=few), forced("other", environment=few)
    assert alone([one, other])[1] is not None


def test_another_process_knows_nothing() -> None:
    few = replace(forced("x").environment, mlx_variables=(("MLX_CUDA_SDPA_CACHE_SIZE", "99"),))
    other = forced("other", environment=few)
    assert alone([forced("one"), other])[1] == alone([other])[0]


def test_runs_without_a_coin_or_off_cuda_are_whole() -> None:
    metal = forced("metal", environment=replace(BLANK.environment, device="gpu"))
    free = forced("free", forced_acceptance=None, seed=0)
    assert alone([metal, metal, free, free]) == [metal, metal, free, free]
