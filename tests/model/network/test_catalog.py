"""The shipped data: whole, sourced, and found by name."""

from __future__ import annotations

import re

import pytest

from model import catalog
from model.errors import InputError
from model.network.config import read_config

NAMES = catalog.architecture_names()


def test_names_are_sorted_and_written_one_way() -> None:
    assert list(NAMES) == sorted(NAMES)
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in NAMES)
    assert len(NAMES) >= 70


def test_case_does_not_matter() -> None:
    assert catalog.architecture_config("Qwen3-4B") == catalog.architecture_config("qwen3-4b")


def test_an_unknown_name_is_refused_with_its_neighbours() -> None:
    with pytest.raises(InputError) as refused:
        catalog.architecture_config("lama-3.2-3b")
    assert str(refused.value).startswith("model 'lama-3.2-3b': is not known; did you mean llama-3")


@pytest.mark.parametrize("name", ["", "../units", "llama-3.1-8b.json", "INDEX"])
def test_only_names_lead_to_files(name: str) -> None:
    with pytest.raises(InputError, match="is not known"):
        catalog.architecture_config(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_architecture_says_where_it_is_from_and_can_be_read(name: str) -> None:
    config = catalog.architecture_config(name)
    source = str(config["_source"])
    assert re.search(r"github:|Hugging Face|litgpt|transformers", source)
    assert read_config(config, name=name, source=source).context_limit is not None
    private = {key for key in config if key.startswith("_")}
    assert private <= {"_source", "_total_params", "_active_params", "_notes"}
