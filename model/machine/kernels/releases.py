"""Releases of MLX, as a profile or a person names them: `mlx-0.32.1`, or `mlx-0.32` for its last.

Kernels change between releases, so a price belongs to one. Which releases there are is data.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TypeAlias

from model.catalog import kernel_data
from model.errors import InputError

Release: TypeAlias = tuple[int, int, int]

_RUNTIME = re.compile(r"mlx-([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?(?:[.+].*)?")


@cache
def known_releases() -> tuple[Release, ...]:
    """Every release whose kernels are tabled, oldest first."""
    return tuple(release_of(text) for text in kernel_data("releases")["releases"])


def release_of(text: str) -> Release:
    """The numbers of a release.

    >>> release_of("0.32.1")
    (0, 32, 1)
    """
    major, minor, patch = (int(number) for number in text.split("."))
    return (major, minor, patch)


def runtime_name(release: Release) -> str:
    """The name under which a profile states a release.

    >>> runtime_name((0, 32, 1))
    'mlx-0.32.1'
    """
    return "mlx-" + ".".join(str(number) for number in release)


def named_release(runtime: str) -> Release:
    """The release that a name asks for; without a patch it is the last of its series.

    Raises:
        InputError: it is not a release of MLX whose kernels are known.

    >>> named_release("mlx-0.31"), named_release("mlx-0.32.1")
    ((0, 31, 2), (0, 32, 1))
    """
    match = _RUNTIME.fullmatch(runtime.strip().lower())
    if match is not None:
        asked = tuple(int(number) for number in match.groups() if number is not None)
        fitting = [known for known in known_releases() if known[: len(asked)] == asked]
        if fitting:
            return fitting[-1]
    series = sorted({known[:2] for known in known_releases()})
    listed = ", ".join(f"mlx-{major}.{minor}" for major, minor in series)
    latest = runtime_name(known_releases()[-1])
    raise InputError(f"runtime {runtime!r}", "is not known", f"give {listed}, or one as {latest}")


def priced_release(runtime: str) -> Release | None:
    """The release whose tables price a profile's runtime: the newest that is not newer than it.

    A release that came after the tables chooses its kernels as the last one that was read; None
    where the runtime is no MLX, or older than the tables.
    """
    match = _RUNTIME.fullmatch(runtime.strip().lower())
    if match is None:
        return None
    major, minor, patch = match.groups()
    # A series without a patch is its last one.
    stated = (int(major), int(minor), 9999 if patch is None else int(patch))
    older = [known for known in known_releases() if known <= stated]
    return older[-1] if older else None
