"""Weight formats: the bytes that MLX stores, by hand and by law."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import InputError
from model.network.weight_format import (
    AFFINE_BITS,
    AFFINE_GROUPS,
    FORMAT_NAMES,
    WeightFormat,
    weight_format,
)

GROUPED = [f"{bits}bit-g{group}" for bits in AFFINE_BITS for group in AFFINE_GROUPS]
EVERY_FORMAT = list(dict.fromkeys(map(weight_format, [*FORMAT_NAMES, *GROUPED])))
formats = st.sampled_from(EVERY_FORMAT)
columns = st.integers(1, 5000)
depths = st.integers(1, 200).map(lambda groups: groups * 128)


@pytest.mark.parametrize(
    ("name", "bits_per_weight"),
    [
        ("fp32", 32),
        ("bf16", 16),
        ("2bit", 2.5),
        ("3bit", 3.5),
        ("4bit", 4.5),
        ("4bit-g32", 5),
        ("4bit-g128", 4.25),
        ("8bit", 8.5),
        ("mxfp4", 4.25),
        ("nvfp4", 4.5),
        ("mxfp8", 8.25),
        ("q4_0", 5),
        ("q4_1", 5),
        ("q8_0", 9),
    ],
)
def test_bits_per_weight_hold_the_share_of_scale_and_bias(
    name: str, bits_per_weight: float
) -> None:
    assert weight_format(name).bits_per_weight == bits_per_weight


def test_a_matrix_by_hand() -> None:
    # 3 bits, groups of 64: 128 weights are 12 words of 4 bytes and 2 groups of 4 bytes.
    assert weight_format("3bit").matrix_bytes(columns=10, depth=128) == 10 * (12 * 4 + 2 * 4)
    # nvfp4, groups of 16: 64 bytes of weights and 8 scales of 1 byte.
    assert weight_format("nvfp4").matrix_bytes(columns=10, depth=128) == 10 * (64 + 8)
    assert weight_format("bf16").matrix_bytes(columns=3, depth=5) == 3 * 5 * 2


@given(formats, columns, depths)
def test_bytes_are_bits_per_weight_times_weights(
    stored_as: WeightFormat, columns: int, depth: int
) -> None:
    exact = columns * depth * stored_as.bits_per_weight / 8
    assert stored_as.matrix_bytes(columns, depth) == exact


@given(formats, formats, columns, depths)
def test_more_bits_per_weight_are_never_fewer_bytes(
    one: WeightFormat, other: WeightFormat, columns: int, depth: int
) -> None:
    fewer, more = sorted((one, other), key=lambda each: each.bits_per_weight)
    assert fewer.matrix_bytes(columns, depth) <= more.matrix_bytes(columns, depth)


@given(formats, columns, columns, depths)
def test_matrices_side_by_side_cost_their_sum(
    stored_as: WeightFormat, some: int, more: int, depth: int
) -> None:
    together = stored_as.matrix_bytes(some + more, depth)
    assert together == stored_as.matrix_bytes(some, depth) + stored_as.matrix_bytes(more, depth)


@pytest.mark.parametrize("stored_as", EVERY_FORMAT, ids=lambda each: each.name)
def test_every_row_is_whole_words(stored_as: WeightFormat) -> None:
    group_bits = (stored_as.group_size or 1) * stored_as.bits
    assert stored_as.family == "float" or group_bits % 32 == 0


@pytest.mark.parametrize("stored_as", EVERY_FORMAT, ids=lambda each: each.name)
def test_a_name_leads_back_to_its_format(stored_as: WeightFormat) -> None:
    assert weight_format(stored_as.name.upper()) == stored_as
    wide = stored_as.with_scale_bits(32)
    assert weight_format(wide.name) == wide
    assert wide.with_scale_bits(16) == stored_as


def test_groups_of_64_need_no_mention() -> None:
    assert weight_format("4bit-g64") == weight_format("4bit")
    assert weight_format(" 4bit-g64-s32").name == "4bit-s32"


def test_only_affine_scales_follow_the_weights() -> None:
    assert weight_format("8bit").with_scale_bits(32).bits_per_weight == 9.0
    assert weight_format("mxfp4").with_scale_bits(32) == weight_format("mxfp4")
    assert weight_format("bf16").with_scale_bits(32) == weight_format("bf16")


def test_a_depth_that_does_not_split_into_groups_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        weight_format("4bit-g128").matrix_bytes(columns=32, depth=2880)
    assert str(refused.value) == (
        "4bit-g128 matrix of depth 2880: does not split into groups of 128; "
        "keep this matrix in 16 bits, or take a smaller group"
    )


@pytest.mark.parametrize(
    "name", ["", "4", "7bit", "0bit", "4bit-g16", "4bit-g", "mxfp4-s32", "bf16-s32", "q4_k", "٤bit"]
)
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InputError) as refused:
        weight_format(name)
    line = str(refused.value)
    assert line.startswith(f"format {name!r}: is not a weight format; use one of fp32, ")
    assert "4bit" in line
    assert "\n" not in line
