"""Releases as people and profiles name them."""

from __future__ import annotations

import pytest

from model.errors import InputError
from model.machine.kernels.releases import (
    known_releases,
    named_release,
    priced_release,
    runtime_name,
)


@pytest.mark.parametrize(
    ("asked", "release"),
    [
        ("mlx-0.31", (0, 31, 2)),
        ("mlx-0.32", (0, 32, 4)),
        ("mlx-0.32.0", (0, 32, 0)),
        ("MLX-0.31.2 ", (0, 31, 2)),
        ("mlx-0.24.2", (0, 24, 2)),
    ],
)
def test_a_series_means_its_last_patch(asked: str, release: tuple[int, int, int]) -> None:
    assert named_release(asked) == release


@pytest.mark.parametrize("asked", ["mlx-0.33", "mlx-0.31.7", "mlx-0.24.1", "0.31", "torch-2.9", ""])
def test_what_is_no_known_release_is_one_line_with_what_is(asked: str) -> None:
    with pytest.raises(InputError, match=r"is not known; give .*mlx-0\.31, mlx-0\.32") as refusal:
        named_release(asked)
    assert "\n" not in str(refusal.value)


def test_every_release_is_found_by_its_own_name() -> None:
    assert list(known_releases()) == sorted(set(known_releases()))
    for release in known_releases():
        assert named_release(runtime_name(release)) == release
        assert priced_release(runtime_name(release)) == release


@pytest.mark.parametrize(
    ("runtime", "release"),
    [
        ("mlx-0.33.1", (0, 32, 4)),  # newer than the tables: as the last that was read
        ("mlx-0.32.4.dev20261129", (0, 32, 4)),
        ("mlx-0.31", (0, 31, 2)),
        ("mlx-0.16.3", None),
        ("mlx-0.19.3", (0, 17, 1)),  # only releases whose kernels differ are tabled
        ("test", None),
    ],
)
def test_a_profile_is_priced_by_the_newest_table_not_newer_than_its_runtime(
    runtime: str, release: tuple[int, int, int] | None
) -> None:
    assert priced_release(runtime) == release
