"""The roofline of a pass: its bytes and FLOP counted by hand, and never above its roof."""

from __future__ import annotations

import math

import pytest

from model.cost.forward import Bound
from model.machine.profile_store import choose_profile
from model.network.target import load_target
from model.prediction.roofline import Roof, pass_point, read_bytes, roofs

M3 = choose_profile("m3-10core-16gb").profile.machine
LLAMA = load_target("llama-3.1-8b", "4bit")


def test_a_pass_reads_its_weights_once_and_its_cache() -> None:
    cache = float(LLAMA.kv_cache_bytes(1000.0))
    one = read_bytes(LLAMA, rows=1, context=1000.0)
    assert one == pytest.approx(LLAMA.weight_bytes_per_token + cache)
    assert read_bytes(LLAMA, rows=9, context=1000.0) == one
    four = read_bytes(LLAMA, rows=1, context=1000.0, sequences=4)
    assert four - one == pytest.approx(3.0 * cache)


def test_more_rows_meet_more_experts_but_never_more_than_there_are() -> None:
    mixture = load_target("qwen3-30b-a3b", "4bit")
    one, two, many = (read_bytes(mixture, rows=rows, context=0.0) for rows in (1, 2, 4096))
    assert one < two < 2.0 * one
    assert many == pytest.approx(mixture.total_bytes - mixture.embedding_bytes, rel=1e-3)


def test_intensity_grows_with_rows_in_proportion_for_a_dense_network() -> None:
    one = pass_point(LLAMA, M3, rows=1, context=1024.0)
    five = pass_point(LLAMA, M3, rows=5, context=1024.0)
    assert five.intensity == pytest.approx(5.0 * one.intensity)
    assert one.under is Bound.MEMORY
    assert five.under is Bound.COMPUTE


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 12, 13, 32, 64])
@pytest.mark.parametrize("stored_as", ["4bit", "8bit", "bf16"])
def test_no_pass_is_above_its_roof(rows: int, stored_as: str) -> None:
    target = load_target("llama-3.1-8b", stored_as)
    point = pass_point(target, M3, rows=rows, context=1024.0)
    assert point.roof_flops_per_s is not None
    assert 0.0 < point.attained_flops_per_s <= point.roof_flops_per_s


def test_a_kernel_has_a_ridge_and_what_was_never_seen_to_bind_is_no_roof() -> None:
    roof = Roof(first_row=1, last_row=None, bandwidth_bytes_per_s=1e11, flops_per_s=1e12)
    assert roof.attainable(5.0) == 5e11
    assert roof.attainable(10.0) == roof.attainable(100.0) == 1e12
    open_roof = Roof(first_row=1, last_row=None, bandwidth_bytes_per_s=None, flops_per_s=None)
    assert math.isinf(open_roof.attainable(5.0))


def test_the_roofs_are_of_every_kernel_in_order() -> None:
    found = roofs(LLAMA, M3)
    assert [(roof.first_row, roof.last_row) for roof in found] == [(1, 12), (13, None)]
