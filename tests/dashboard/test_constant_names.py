"""Every constant of every profile that is shipped has a meaning in words."""

from __future__ import annotations

import pytest

from dashboard.rows.constant_names import SINGLE, meaning
from model.machine.profile import (
    APART_REREAD,
    DEVICE_CONSTANTS,
    HOST_CONSTANTS,
    HOST_LAYER_CONSTANTS,
    LAYER_CONSTANTS,
    SUSTAINED_SHARE,
)
from model.machine.profile_store import named_profile


@pytest.mark.parametrize("name", ["h200-mlx-0.32.4", "m3-10core-16gb", "m4-max-40core-mlx-0.32"])
def test_no_constant_is_left_to_its_name(name: str) -> None:
    for constant in named_profile(name).constants:
        assert meaning(constant) != constant


def test_every_constant_that_a_profile_may_have_is_named_once() -> None:
    several = (DEVICE_CONSTANTS, HOST_CONSTANTS, HOST_LAYER_CONSTANTS, LAYER_CONSTANTS)
    possible = [name for names in several for name in names]
    assert sorted([*possible, APART_REREAD, SUSTAINED_SHARE]) == sorted(SINGLE)
    assert len(set(SINGLE.values())) == len(SINGLE)


def test_attention_of_several_kernels_is_told_from_that_of_one() -> None:
    fused, other = (meaning(f"{prefix}attention.1.flops_per_s") for prefix in ("", "unfused."))
    assert fused == "how fast it computes: attention over the cache, the kernel for few rows"
    assert other == (
        "how fast it computes: attention that is not one kernel, as of a batch, "
        "the kernel for few rows"
    )
