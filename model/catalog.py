"""The data that is shipped inside the package; the one module that opens it."""

from __future__ import annotations

import json
import tomllib
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from model.errors import InputError, unknown_name


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
def head_names() -> tuple[str, ...]:
    """The names of the shipped draft heads, sorted and in lower case."""
    entries = (entry.name for entry in _data("heads").iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in entries if name.endswith(".json")))


def head_config(name: str) -> dict[str, object]:
    """The config.json of a shipped draft head; case does not matter.

    Keys with an underscore are ours: beside those of an architecture, `_target` names the model
    the head is for, `_taps` how many of its layers the head reads, `_own_embed` and `_own_lm_head`
    whether the file holds tables of its own, and `_index_entries` counts integers in it that
    `_total_params` includes.

    Raises:
        InputError: there is no head of that name.
    """
    if name.lower() not in head_names():
        near = " or ".join(get_close_matches(name.lower(), head_names(), n=3, cutoff=0.0))
        raise InputError(f"head {name!r}", "is not known", f"did you mean {near}?")
    entry = _data("heads") / f"{name.lower()}.json"
    return json.loads(entry.read_text(encoding="utf-8"))


@cache
def packaged_profile_names() -> tuple[str, ...]:
    """The names of the shipped machine profiles, sorted."""
    entries = (entry.name for entry in _data("machines").iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in entries if name.endswith(".json")))


def packaged_profile_text(name: str) -> str:
    """The text of a shipped machine profile, named exactly."""
    return (_data("machines") / f"{name}.json").read_text(encoding="utf-8")


def acceptance_table_text() -> str:
    """The text of the published acceptance table: CSV, described in the notes beside it."""
    return (_data("published") / "acceptance.csv").read_text(encoding="utf-8")


def glossary_text() -> str:
    """The terms that are used everywhere, as a Markdown table; the README has the same."""
    return _data("glossary.md").read_text(encoding="utf-8")


@cache
def kernel_data(name: str) -> dict[str, Any]:
    """A table of MLX's kernels: a back end's (`metal`, `cuda`, `cpu`), `releases` or `rates`."""
    return _toml(_data("kernels") / f"{name}.toml")


@cache
def working_set_data() -> dict[str, Any]:
    """What macOS lets a GPU keep resident, by memory size."""
    return _toml(_data("working_sets.toml"))


def _toml(entry: Traversable) -> dict[str, Any]:
    return tomllib.loads(entry.read_text(encoding="utf-8"))


def _data(folder: str) -> Traversable:
    return files("model") / "data" / folder
