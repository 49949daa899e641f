"""The optional library mlx-vlm: whether it is installed, and what of it is watched.

Its loops say less than a record needs, and random weights are never sure of anything. So a
function of a loop is replaced while the loop runs, by one that asks the first and notes or
overrules its answer. Which functions those are is private to the library: another version may not
have them, and then that is what is said.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from model.errors import InputError

PACKAGE = "mlx_vlm"
TRIED = "0.7.10"
"""The version that everything here was tried with."""


def require(what: str) -> None:
    """Refuse what needs the library where it is not installed.

    Raises:
        InputError: it is not.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        wrong = "needs mlx-vlm, which is not installed"
        raise InputError(what, wrong, "run: make setup, or: pip install '.[diffusion]'")


def library_name() -> str:
    """The library with its version, as a record names it."""
    return f"mlx-vlm {version('mlx-vlm')}"


def part(name: str) -> Any:
    """One of the library's modules, by its path inside the library.

    Raises:
        InputError: this version has none of that name.
    """
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except ImportError as error:
        raise InputError(library_name(), f"has no {name}", f"install {TRIED}") from error


@contextmanager
def watched(module: Any, name: str, watcher: Callable[[Any], Any]) -> Generator[None]:
    """Put `watcher(function)` in the place of a module's function, for a while.

    Raises:
        InputError: this version's module has no such function.
    """
    function = getattr(module, name, None)
    if function is None:
        raise InputError(library_name(), f"has no {name}", f"install {TRIED}")
    setattr(module, name, watcher(function))
    try:
        yield
    finally:
        setattr(module, name, function)
