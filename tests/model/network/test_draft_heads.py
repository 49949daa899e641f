"""Draft heads: counts of every shipped one, what a bound one reads, and refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from model import catalog
from model.errors import InputError
from model.network.config.heads import read_head
from model.network.draft_head import DraftHead, HeadKind
from model.network.head_target import load_head
from model.network.target import load_target

NAMES = catalog.head_names()


def shipped(name: str) -> DraftHead:
    return read_head(catalog.head_config(name), name=name, source=name)


def read(config: Mapping[str, object], **changes: object) -> DraftHead:
    return read_head({**config, **changes}, name="toy", source="toy.json")


@pytest.mark.parametrize("name", NAMES)
def test_every_count_is_the_one_that_was_checked(name: str) -> None:
    config, head = catalog.head_config(name), shipped(name).architecture
    indices = config.get("_index_entries", 0)
    assert isinstance(indices, int)
    assert head.params + indices == config["_total_params"]
    assert head.active_params == config.get("_active_params", head.params)


@pytest.mark.parametrize("name", NAMES)
def test_every_head_says_where_it_is_from_and_whose_it_is(name: str) -> None:
    config = catalog.head_config(name)
    assert re.search(r"github:|Hugging Face", str(config["_source"]))
    assert shipped(name).target == config["_target"]


def test_no_head_is_listed_among_the_models() -> None:
    assert len(NAMES) >= 41
    assert not set(NAMES) & set(catalog.architecture_names())


def test_the_mtp_head_of_qwen3_5_4b_by_hand() -> None:
    """A layer of gated attention (queries twice as wide) and fc; every pass reads all of it."""
    target = load_target("qwen3.5-4b", "4bit")
    head, design = load_head("qwen3.5-4b-mtp", "bf16", target)
    attention = 2560 * (2 * 4096 + 2 * 1024) + 4096 * 2560
    matrices = 2 * 2560 * 2560 + attention + 3 * 2560 * 9216
    vectors = 5 * 2560 + 2 * 256
    assert head.total_bytes == 2 * (matrices + vectors) == 241_199_104
    # The logits are those of the target's table, 248,320 rows of 4.5 bits a weight.
    assert head.head_bytes == target.head_bytes == 248_320 * 2560 * 9 // 16
    assert head.weight_bytes_per_token == head.total_bytes + target.head_bytes == 598_779_904
    assert design.past_fusion(head) == head
    assert head.kv_bytes_per_token == 2 * 4 * 256 * 2


def test_the_eagle_head_of_llama_3_1_8b_by_hand() -> None:
    """Attention reads token and state, fc three states of the target: only the hook reads fc."""
    head, design = load_head("llama-3.1-8b-eagle3", "bf16", load_target("llama-3.1-8b", "4bit"))
    attention = 2 * 4096 * (4096 + 2 * 1024) + 4096 * 4096
    layer = attention + 3 * 4096 * 14336
    logits = 32_000 * 4096
    fc = 3 * 4096 * 4096
    vectors = 4 * 4096
    assert head.weight_bytes_per_token == 2 * (layer + logits + fc + vectors) == 849_379_328
    later = design.past_fusion(head)
    assert later.weight_bytes_per_token == 2 * (layer + logits + vectors) == 748_716_032
    assert head.total_bytes == head.weight_bytes_per_token + 2 * 128_256 * 4096


def test_the_dflash_head_of_qwen3_4b_by_hand() -> None:
    """Five layers of Qwen 3 4B, fc of five taps, and the target's tied table as the logits."""
    target = load_target("qwen3-4b", "4bit")
    head, design = load_head("qwen3-4b-dflash", "bf16", target)
    layer = 2560 * (4096 + 2 * 1024 + 4096) + 3 * 2560 * 9728 + 2 * 2560 + 2 * 128
    fc = 5 * 2560 * 2560
    assert head.total_bytes == 2 * (5 * layer + fc + 2 * 2560) == 2 * 537_427_200
    block = design.past_fusion(head)
    table = 151_936 * 2560 * 9 // 16
    assert block.weight_bytes_per_token == 2 * (5 * layer + 2 * 2560) + table == 1_228_106_240
    assert design.longest_draft == 15


def test_an_eagle_head_shares_the_embedding_of_a_target_in_its_format() -> None:
    apart, _ = load_head("llama-3.1-8b-eagle3", "bf16", load_target("llama-3.1-8b", "4bit"))
    shared, _ = load_head("llama-3.1-8b-eagle3", "bf16", load_target("llama-3.1-8b", "bf16"))
    assert apart.total_bytes - shared.total_bytes == 2 * 128_256 * 4096
    assert apart.weight_bytes_per_token == shared.weight_bytes_per_token


def test_a_borrowed_table_has_the_format_of_the_target() -> None:
    for format_name in ("bf16", "8bit", "4bit"):
        target = load_target("qwen3-4b", format_name)
        head, _ = load_head("qwen3-4b-dflash", "4bit", target)
        assert head.head_bytes == target.head_bytes
        assert head.weight_format.name == "4bit"


def test_an_assistant_keeps_no_cache_and_reads_its_targets() -> None:
    layers = shipped("gemma-4-12b-assistant").architecture.layers
    mixers = [layer.mixer for layer in layers if layer.mixer is not None]
    assert [mixer.kv_elements_per_token() for mixer in mixers] == [0] * 4
    # Keys and values of 8 heads of 256 in a window of 1024, and of one head of 512 everywhere.
    read_bytes = [mixer.cache_read(4096, 2).read_bytes for mixer in mixers]
    assert read_bytes == [1024 * 8 * 512 * 2] * 3 + [4096 * 1 * 1024 * 2]


def test_ordered_embeddings_read_the_likeliest_clusters() -> None:
    head = shipped("gemma-4-e2b-assistant").architecture
    assert head.head.columns == 2048 + 32 * 128
    assert head.params == 77_993_476 - 262_144


def test_a_head_of_a_hugging_face_config_keeps_its_block_in_dflash_config() -> None:
    config = catalog.head_config("qwen3-4b-dspark")
    moved = {key: config[key] for key in ("block_size", "markov_rank", "enable_confidence_head")}
    inside = {**moved, "target_layer_ids": [1, 9, 17, 25, 33]}
    rest = {key: value for key, value in config.items() if key not in {*moved, "_taps"}}
    assert read(rest, dflash_config=inside).architecture.params == config["_total_params"]
    assert read(rest, dflash_config=inside).longest_draft == 7


def test_an_eagle_head_of_speculators_keeps_its_layer_apart() -> None:
    config = catalog.head_config("llama-3.1-8b-eagle3")
    found = read(
        {},
        speculators_model_type="eagle3",
        draft_vocab_size=config["draft_vocab_size"],
        transformer_layer_config=config,
    )
    assert found.kind is HeadKind.EAGLE
    assert found.architecture.params == shipped("llama-3.1-8b-eagle3").architecture.params


@pytest.mark.parametrize(
    ("head", "target", "line"),
    [
        (
            "qwen3-8b-dflash",
            "qwen3-4b",
            "head qwen3-8b-dflash: reads states of 4096 numbers, qwen3-4b has 2560; "
            "choose a head of qwen3-4b, or qwen3-8b as the target",
        ),
        (
            "llama-3.1-8b-eagle3",
            "qwen3-8b",
            "head llama-3.1-8b-eagle3: has a vocabulary of 128256 tokens, qwen3-8b has 151936; "
            "choose a head of qwen3-8b, or llama-3.1-8b as the target",
        ),
        ("qwen3-4b", "qwen3-4b", "is not a known draft head"),
        (
            "qwen3-4b-dflsh",
            "qwen3-4b",
            "head 'qwen3-4b-dflsh': is not known; did you mean qwen3-4b",
        ),
        ("", "qwen3-4b", "is not known"),
        ("no/such/folder", "qwen3-4b", "no/such/folder: is not a file or folder"),
    ],
)
def test_what_is_no_head_of_the_target_is_refused(head: str, target: str, line: str) -> None:
    with pytest.raises(InputError) as refused:
        load_head(head, "4bit", load_target(target, "4bit"))
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_is_a_head_and_its_stated_format_counts(tmp_path: Path) -> None:
    config = catalog.head_config("qwen3-4b-dflash")
    quantized = {**config, "quantization": {"group_size": 64, "bits": 4}}
    (tmp_path / "config.json").write_text(json.dumps(quantized), encoding="utf-8")
    target = load_target("qwen3-4b", "bf16")
    head, _ = load_head(str(tmp_path), None, target)
    assert head.weight_format.name == "4bit"
    assert head.head_bytes == target.head_bytes == 151_936 * 2560 * 2
    assert load_head("qwen3-4b-dflash", None, target)[0].weight_format.name == "bf16"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("qwen3-4b-dflash", "_taps"),
        ("qwen3-4b-dspark", "markov_rank"),
        ("qwen3.8-27b-dflash2", "selector_rank"),
        ("gemma-4-12b-assistant", "backbone_hidden_size"),
        ("vicuna-7b-v1.3-redrafter", "exit_dim"),
        ("llama-3.1-8b-eagle3", "intermediate_size"),
    ],
)
def test_a_missing_size_is_named(name: str, key: str) -> None:
    config = {at: value for at, value in catalog.head_config(name).items() if at != key}
    with pytest.raises(InputError, match=f"toy.json: {key}: is missing"):
        read(config)
