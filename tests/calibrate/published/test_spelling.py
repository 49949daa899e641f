"""Spellings of one network's name agree, and names of two networks never do."""

from __future__ import annotations

import pytest

from calibrate.published.names import target_of
from calibrate.published.refusal import Refusal
from calibrate.published.spelling import spelled
from calibrate.published.targets import shipped_by_key
from model import catalog
from tests.calibrate.published.published_run import PLAIN, published


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("mlx-community/Qwen3-8B-4bit", "qwen3-8b"),
        ("Qwen 3 8B", "qwen3-8b"),
        ("qwen3_8b_instruct", "qwen3-8b"),
        ("unsloth/Meta-Llama-3.1-70B-Instruct-GGUF", "llama-3.1-70b"),
        ("Llama-3.3-70B", None),
        ("lmstudio-community/gemma-3-27b-it-MLX-8bit", "gemma-3-27b"),
        ("Mistral-7B-Instruct-v0.2", "mistral-7b-v0.2"),
        ("Qwen3-8B-Q4_K_M.gguf", "qwen3-8b"),
        ("Phi-3.5", None),  # mini or MoE?
        ("Qwen3-8B-Base", "qwen3-8b"),
        ("Qwen3-80B", None),
        ("Qwen38B", None),  # 38 billion?
    ],
)
def test_a_target_is_found_by_its_spelling(name: str, file: str | None) -> None:
    found = target_of(published(PLAIN, target_model=name))
    assert (None if isinstance(found, Refusal) else found.architecture.name) == file


def test_every_shipped_name_has_a_key_of_its_own() -> None:
    names = (*catalog.architecture_names(), *catalog.head_names())
    assert len({spelled(name).key for name in names}) == len(names)
    assert {shipped_by_key()[spelled(name).key] for name in catalog.architecture_names()} == set(
        catalog.architecture_names()
    )


@pytest.mark.parametrize(
    ("name", "stored_as"),
    [
        ("Qwen3-0.6B-4bit", "4bit"),
        ("Qwen3-0.6B 8-bit", "8-bit"),
        ("X-DSpark (4bit drafter)", "4bit"),
        ("X (Q4_K_M)", "Q4_K_M"),
        ("X-4bit-mlx", "4bit"),
        ("X-bf16", "bf16"),
        ("X-mxfp4", "mxfp4"),
        ("Qwen2.5-1.5B 4bit (written '1B')", "4bit"),
        ("gemma-4-12B-it-assistant 4bit (MTP)", "4bit"),
        ("Qwen3-4B", ""),
        ("DFlash w4, adaptive block", ""),
    ],
)
def test_a_name_may_end_with_its_format(name: str, stored_as: str) -> None:
    assert spelled(name).format == stored_as
