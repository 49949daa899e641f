"""The data that is shipped inside the package; the one module that opens it."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from model.errors import unknown_name


@cache
def architecture_names() -> tuple[str, ...]:
    """The names of the shipped architectures, sorted and in lower case."""
    entries = (entry.name for entry in _data("architectures").iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in entries if name.endswith(".json")))


def architecture_config(name: str) -> dict[str, object]:
    """The config.json of a shipped architecture; case does not matter.

    The keys are those of Hugging Face; `_source` says where they were read, and `_total_params`
    and `_active_params` are what was counted there, to be checked against.

    Raises:
        InputError: there is no architecture of that name.
    """
    if name.lower() not in architecture_names():
        raise unknown_name("model", name, architecture_names())
    entry = _data("architectures") / f"{name.lower()}.json"
    return json.loads(entry.read_text(encoding="utf-8"))


@cache
def packaged_profile_names() -> tuple[str, ...]:
    """The names of the shipped machine profiles, sorted."""
    entries = (entry.name for entry in _data("machines").iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in entries if name.endswith(".json")))


def packaged_profile_text(name: str) -> str:
    """The text of a shipped machine profile, named exactly."""
    return (_data("machines") / f"{name}.json").read_text(encoding="utf-8")


def _data(folder: str) -> Traversable:
    return files("model") / "data" / folder
