"""Host and device: what is hidden, and what waiting costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.forward import PassCost
from model.cost.pipeline import awaited_s, pipelined_s

seconds = st.floats(min_value=0.0, max_value=10.0)
shares = st.floats(min_value=0.0, max_value=1.0)


def cost(
    *,
    device: float,
    build: float = 0.0,
    submit: float = 0.0,
    commit_share: float = 0.0,
    begin_share: float = 0.0,
) -> PassCost:
    return PassCost(
        weights_s=device,
        kv_s=0.0,
        arithmetic_s=0.0,
        dispatch_s=0.0,
        lower_s=device,
        upper_s=device,
        build_s=build,
        submit_s=submit,
        commit_share=commit_share,
        begin_share=begin_share,
    )


def test_a_pipelined_pass_takes_the_slower_of_host_and_device() -> None:
    assert float(pipelined_s(cost(device=5.0, build=1.0, submit=2.0))) == 5.0
    assert float(pipelined_s(cost(device=2.0, build=1.0, submit=2.0))) == 3.0


def test_an_awaited_pass_shows_its_graph_building_and_the_sync() -> None:
    assert float(awaited_s([cost(device=5.0, build=1.0, submit=2.0)], 0.5)) == 6.5
    assert float(awaited_s([cost(device=1.0, build=1.0, submit=2.0)], 0.5)) == 3.5


def test_queued_passes_hide_the_host_behind_the_device() -> None:
    passes = [cost(device=5.0, build=1.0, submit=2.0)] * 3
    assert float(awaited_s(passes, 0.0)) == 1.0 + 3 * 5.0


def test_a_fast_device_waits_for_a_slow_host() -> None:
    passes = [cost(device=0.1, build=1.0, submit=2.0)] * 3
    assert float(awaited_s(passes, 0.0)) == pytest.approx(9.0)


def test_a_short_draft_leaves_the_verify_pass_to_be_built() -> None:
    """Draft ends at 2; the verify pass is built at 2.5 and only then can start."""
    draft, verify = cost(device=1.0, build=1.0, submit=0.5), cost(device=4.0, build=1.0)
    assert float(awaited_s([draft, verify], 0.0)) == 2.5 + 4.0


def test_a_device_waits_for_the_first_commit_and_has_the_last_left() -> None:
    """In one commit host and device take turns; in four a quarter of either shows."""
    slow_device = {"device": 4.0, "build": 1.0, "submit": 2.0}
    slow_host = {"device": 2.0, "build": 1.0, "submit": 4.0}
    for share, device_bound, host_bound in ((1.0, 7.0, 7.0), (0.25, 5.5, 5.5), (0.0, 5.0, 5.0)):
        for stages, bound in ((slow_device, device_bound), (slow_host, host_bound)):
            whole = cost(**stages, commit_share=share, begin_share=share)
            assert float(awaited_s([whole], 0.0)) == bound


def test_a_device_waits_for_the_walk_too_and_a_slow_host_hides_it() -> None:
    """Of four commits, behind a walk of a third: half of submitting comes before the device."""
    shares = {"commit_share": 0.25, "begin_share": 0.5}
    slow_device = cost(device=4.0, build=1.0, submit=2.0, **shares)
    assert float(awaited_s([slow_device], 0.0)) == 1.0 + 0.5 * 2.0 + 4.0
    slow_host = cost(device=2.0, build=1.0, submit=4.0, **shares)
    assert float(awaited_s([slow_host], 0.0)) == 1.0 + 4.0 + 0.25 * 2.0


stages = st.tuples(seconds, seconds, seconds, shares, shares)


@given(st.lists(stages, min_size=1, max_size=6), seconds)
def test_a_round_is_bounded_by_its_longer_stage_and_by_the_sum(
    passes: list[tuple[float, float, float, float, float]], sync: float
) -> None:
    costs = [
        cost(device=d, build=b, submit=s, commit_share=c, begin_share=w) for d, b, s, c, w in passes
    ]
    time = float(awaited_s(costs, sync))
    device, host = sum(d for d, *_ in passes), sum(b + s for _, b, s, *_ in passes)
    assert max(device, host) + sync <= time * (1 + 1e-12) + 1e-12
    assert time <= device + host + sync + 1e-9
