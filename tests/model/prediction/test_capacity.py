"""Memory by part: the parts are the working set, and the longest context is the last that fits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.machine.profile_store import choose_profile
from model.network.target import load_target
from model.prediction.capacity import longest_context, residents
from model.progress.acceptance import Acceptance
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative

M3 = choose_profile("m3-10core-16gb").profile.machine
LLAMA = load_target("llama-3.1-8b", "4bit")
DRAFTED = Speculative(
    draft=load_target("llama-3.2-1b", "4bit"),
    draft_length=2,
    acceptance=Acceptance(by_position=(0.6,)),
)


@pytest.mark.parametrize("strategy", [Plain(), Plain(sequences=4), DRAFTED])
def test_the_parts_sum_to_the_working_set(strategy: Plain | Speculative) -> None:
    found = residents(strategy, LLAMA, M3, context=5000.0)
    parts = (
        found.weights_bytes
        + found.cache_bytes
        + found.draft_weights_bytes
        + found.draft_cache_bytes
        + found.buffer_bytes
    )
    assert parts == pytest.approx(found.memory.working_set_bytes, rel=1e-12)
    assert found.cache_bytes == pytest.approx(strategy.batch * float(LLAMA.kv_cache_bytes(5000.0)))


@pytest.mark.parametrize("strategy", [Plain(), Plain(sequences=4), DRAFTED])
def test_one_token_more_than_the_longest_context_does_not_fit(
    strategy: Plain | Speculative,
) -> None:
    longest, full = longest_context(strategy, LLAMA, M3)
    assert full
    assert longest is not None
    assert residents(strategy, LLAMA, M3, context=float(longest)).memory.fits
    assert not residents(strategy, LLAMA, M3, context=float(longest + 1)).memory.fits


def test_a_draft_takes_room_from_the_cache() -> None:
    plain, _ = longest_context(Plain(), LLAMA, M3)
    drafted, _ = longest_context(DRAFTED, LLAMA, M3)
    assert plain is not None
    assert drafted is not None
    assert drafted < plain


def test_with_memory_enough_the_networks_limit_is_what_stops() -> None:
    large = replace(M3, recommended_working_set_bytes=10**12)
    assert longest_context(Plain(), LLAMA, large) == (131072, False)


def test_weights_that_do_not_fit_leave_no_context() -> None:
    assert longest_context(Plain(), load_target("llama-3.1-70b", "4bit"), M3) == (None, True)
