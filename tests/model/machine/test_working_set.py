"""The working set that macOS recommends, by memory."""

from __future__ import annotations

import pytest

from model.errors import InputError
from model.machine.working_set import recommended_bytes, reported_limits, working_set_share

GIB = 2**30


def test_every_reported_limit_is_a_share_and_has_a_source() -> None:
    for limit in reported_limits():
        assert 0.6 < limit.recommended_bytes / (limit.memory_gib * GIB) < 0.95
        assert limit.source


@pytest.mark.parametrize(
    ("gib", "macos", "share"),
    [
        (8, None, 0.667),
        (16, None, 0.667),
        (16, 15, 0.667),
        (16, 26, 0.740),
        (24, 26, 0.740),
        (48, None, 0.780),
        (64, 15, 0.750),
        (64, 27, 0.810),
        (128, None, 0.840),
        (192, 15, 0.840),
        (256, 26, 0.8125),
        (512, None, 0.906),
    ],
)
def test_shares_by_memory_and_macos(gib: int, macos: int | None, share: float) -> None:
    found = working_set_share(gib * GIB, macos=macos)
    assert found.share == pytest.approx(share, abs=0.001)
    assert found.note == ""


@pytest.mark.parametrize(("gib", "nearest"), [(36, 32), (96, 128), (4, 8), (1024, 512)])
def test_an_unseen_size_takes_the_nearest_and_says_so(gib: int, nearest: int) -> None:
    found = working_set_share(gib * GIB)
    assert found.reported_gib == nearest
    assert f"no Mac with {gib} GiB" in found.note
    assert recommended_bytes(gib * GIB) == pytest.approx(found.share * gib * GIB)


def test_a_16_gb_mac_reports_10922_67_mib() -> None:
    assert recommended_bytes(16 * GIB) == 11_453_246_122


def test_no_memory_is_one_line() -> None:
    with pytest.raises(InputError, match="memory of 0 bytes: is none; give 1 byte or more"):
        recommended_bytes(0)
