"""The interval of the acceptance needed ends where the verdict of a prediction turns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.machine.profile import Profile
from model.machine.profile_store import named_profile
from model.network.target import load_target
from model.prediction.break_even import break_even
from model.prediction.needed_range import NeededRange, needed_ranges
from model.prediction.prediction import predict
from model.prediction.round_costs import round_costs
from model.progress.acceptance import Acceptance
from model.strategies.speculative import Speculative

TARGET = load_target("llama-3.1-8b", "4bit")
DRAFT = load_target("llama-3.2-1b", "4bit")
LENGTHS = (1, 2, 4, 8)
M3, M4 = "m3-10core-16gb", "m4-pro-20core-mlx-0.32"


def speculative(length: int, acceptance: float, *, sequences: int = 1) -> Speculative:
    return Speculative(
        draft=DRAFT,
        draft_length=length,
        acceptance=Acceptance(by_position=(acceptance,)),
        sequences=sequences,
    )


def ranges(profile: Profile, *, sequences: int = 1) -> tuple[NeededRange, ...]:
    strategy = speculative(1, 0.0, sequences=sequences)
    return needed_ranges(strategy, TARGET, profile, context=1024.0, draft_lengths=LENGTHS)


@pytest.mark.parametrize("machine", [M3, M4])
@pytest.mark.parametrize("sequences", [1, 3])
def test_a_prediction_at_an_end_of_the_interval_has_an_interval_that_ends_at_1(
    machine: str, sequences: int
) -> None:
    profile = named_profile(machine)
    ends = 0
    for length, found in zip(LENGTHS, ranges(profile, sequences=sequences), strict=True):
        for at, end in ((found.low, 1), (found.high, 0)):
            if at is None or at == 0.0:
                continue
            asked = speculative(length, at, sequences=sequences)
            interval = predict(asked, TARGET, profile, context=1024.0).speedup_interval_90
            assert interval is not None
            assert interval[end] == pytest.approx(1.0, abs=1e-4)
            ends += 1
    assert ends >= 3


@pytest.mark.parametrize("machine", [M3, M4])
def test_the_acceptance_needed_lies_in_its_interval(machine: str) -> None:
    profile = named_profile(machine)
    costs = round_costs(
        speculative(1, 0.0), TARGET, profile.machine, context=1024.0, draft_lengths=LENGTHS
    )
    for needed, found in zip(break_even(costs), ranges(profile), strict=True):
        assert needed is not None
        assert found.low is not None
        assert found.low <= needed
        assert found.high is None or needed <= found.high


def test_with_constants_that_are_certain_the_interval_is_a_point() -> None:
    profile = named_profile(M3)
    certain = Profile(
        header=replace(profile.header, residual_log=0.0, several_rows_residual_log=0.0),
        constants={
            name: replace(constant, draws=constant.draws * 0.0 + constant.value)
            for name, constant in profile.constants.items()
        },
        environment={},
        samples=(),
    )
    costs = round_costs(
        speculative(1, 0.0), TARGET, profile.machine, context=1024.0, draft_lengths=LENGTHS
    )
    for needed, found in zip(break_even(costs), ranges(certain), strict=True):
        assert found.low == pytest.approx(needed, abs=1e-4)
        assert found.high == pytest.approx(needed, abs=1e-4)


def test_more_scatter_is_a_wider_interval_and_at_last_none_surely_wins() -> None:
    profile = named_profile(M3)
    narrow = ranges(profile)
    header = replace(profile.header, residual_log=3.0 * profile.header.residual_log)
    wide = ranges(replace(profile, header=header))
    for near, far in zip(narrow, wide, strict=True):
        assert (far.low or 0.0) <= (near.low or 0.0)
        assert far.high is None or far.high > (near.high or 0.0)
    lost = ranges(replace(profile, header=replace(profile.header, residual_log=1.0)))
    assert [found.high for found in lost] == [None] * len(LENGTHS)


def test_where_every_round_costs_more_than_it_gives_there_is_no_interval() -> None:
    strategy = Speculative(
        draft=load_target("llama-3.1-8b", "bf16"),
        draft_length=1,
        acceptance=Acceptance(by_position=(0.0,)),
    )
    [found] = needed_ranges(strategy, TARGET, named_profile(M3), context=1024.0, draft_lengths=(2,))
    assert found == NeededRange(low=None, high=None)
