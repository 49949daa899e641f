"""A head start: chains submitted behind other work show their own time, or say that they cannot."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import pytest

from calibrate import head_start
from calibrate.chain import Chain
from calibrate.head_start import HeadStart


@pytest.fixture(autouse=True)
def short_blocker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of next to nothing, so that this takes no time."""
    monkeypatch.setattr(head_start, "factor", lambda: mx.eye(4))


class Builder:
    """Graphs of three sums, and how often they were built."""

    def __init__(self) -> None:
        self.built = 0

    def __call__(self) -> Sequence[mx.array]:
        self.built += 1
        first = mx.ones((4,)) + self.built
        return [first, first + 1.0, first + 2.0]


def test_what_was_submitted_behind_a_blocker_is_still_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(head_start, "WAITED_S", -1.0)
    build = Builder()
    pieces = HeadStart().submitted(build)
    assert pieces is not None
    assert build.built == 1
    assert pieces[-1].tolist() == [4.0] * 4


def test_a_host_that_is_too_slow_is_told_after_ever_longer_blockers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(head_start, "WAITED_S", float("inf"))
    monkeypatch.setattr(head_start, "MOST_PRODUCTS", 8)
    build = Builder()
    assert HeadStart().submitted(build) is None
    assert build.built == len([2, 4, 8])


def test_after_many_failures_and_no_success_none_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_start, "WAITED_S", float("inf"))
    monkeypatch.setattr(head_start, "MOST_PRODUCTS", 2)
    ahead, build = HeadStart(), Builder()
    for _ in range(head_start.MOST_FAILURES):
        assert not ahead.is_hopeless
        ahead.submitted(build)
    assert ahead.is_hopeless
    assert ahead.submitted(build) is None
    assert build.built == head_start.MOST_FAILURES


def test_one_success_keeps_it_hopeful(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, build = HeadStart(), Builder()
    monkeypatch.setattr(head_start, "WAITED_S", -1.0)
    ahead.submitted(build)
    monkeypatch.setattr(head_start, "WAITED_S", float("inf"))
    for _ in range(2 * head_start.MOST_FAILURES):
        ahead.submitted(build)
    assert not ahead.is_hopeless


def test_a_chain_that_cannot_be_ahead_is_measured_the_plain_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ahead = HeadStart()
    monkeypatch.setattr("calibrate.chain.head_start", lambda: ahead)
    monkeypatch.setattr(head_start, "WAITED_S", float("inf"))
    chain = Chain(mx.zeros((4,)), lambda x, _: x + 1.0, kernels=8)
    assert chain.longest == head_start.KERNELS_AHEAD // 8
    chain.prepare(5)()
    assert chain.longest > head_start.KERNELS_AHEAD
    assert not chain.is_ahead
