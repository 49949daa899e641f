"""Networks that choose what to attend to: what their configs may not say, and what follows."""

from __future__ import annotations

from typing import Any

import pytest

from model import catalog
from model.errors import InputError
from model.network.architecture import Architecture
from model.network.config import read_config


def read(name: str, **changes: object) -> Architecture:
    config: dict[str, Any] = catalog.architecture_config(name)
    if "text_config" in config:
        changes = {"text_config": config["text_config"] | changes}
    return read_config(config | changes, name=name, source="toy")


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("deepseek-v4-flash", {"compress_ratios": [0, 4]}, "has 2 entries"),
        ("deepseek-v4-flash", {"compress_ratios": [7] * 43}, "holds 7"),
        ("deepseek-v4-flash", {"o_groups": 7}, "does not divide the 64"),
        ("deepseek-v4-flash", {"num_experts_per_tok": 300}, "is more than the 256 experts"),
        ("deepseek-v4-flash", {"hc_mult": None}, "is missing"),
        ("glm-5.3-flash", {"layer_types": ["linear_attention"]}, "has 1 entries"),
        ("glm-5.3-flash", {"mlp_layer_types": ["thick"] * 45}, "holds 'thick'"),
        ("glm-5.3-flash", {"indexer_types": ["shared"] * 45}, "without an indexer"),
        ("glm-5.3-flash", {"qk_rope_head_dim": 64}, "is not what mlx-vlm runs"),
        ("qwen3.8-flash-next", {"layer_types": ["mamba"] * 48}, "does not fit the layers"),
        ("qwen3.8-flash-next", {"ple_layer_ids": [2, 3]}, "names more than one layer"),
        ("qwen3.8-flash-next", {"ple_layer_ids": [49]}, "holds 49"),
        ("qwen3.8-flash-next", {"ple_layer_ids": ["2"]}, "holds '2'"),
        ("qwen3.8-flash-next", {"heads_per_ngram": 100}, "makes 200"),
        ("qwen3.8-flash-next", {"ngram_size": 1}, "is below 2"),
    ],
)
def test_bad_configs_are_refused(name: str, changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(name, **changes)


def test_hashed_layers_have_a_table_in_place_of_a_correction() -> None:
    hashed, plain = read("deepseek-v4-flash"), read("deepseek-v4-flash", num_hash_layers=0)
    assert hashed.params - plain.params == 3 * (129_280 * 6 - 256)


def test_without_a_layer_of_n_grams_there_is_no_table() -> None:
    bare = read("qwen3.8-flash-next", ple_layer_ids=[])
    assert bare.lookups == ()
    # Two matrices, three norms and a kernel of four over the streams, and 35 integers.
    layer = 2560 * (4 + 1) * 2560 + (3 + 4) * 4 * 2560 + 35
    assert read("qwen3.8-flash-next").params - bare.params == 320_001_536 * 160 + layer


def test_a_head_of_an_n_gram_table_has_a_prime_number_of_rows() -> None:
    """From 10 on: 11, 13, 17, 19, which are 60, rounded up to 64."""
    small = read(
        "qwen3.8-flash-next",
        ngram_size=3,
        heads_per_ngram=2,
        ngram_vocab_size_base=10,
        make_ngram_vocab_size_divisible_by=32,
    )
    assert [(each.columns, each.depth) for each in small.lookups] == [(64, 640)]
