"""Checkpoints: worked bytes of real networks, overrides, and what holds for every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import catalog
from model.errors import InputError
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint, Overrides
from model.network.config import read_config
from model.network.config.quantization import stated_checkpoint
from model.network.weight_format import FORMAT_NAMES, weight_format
from model.units import GB

NAMES = catalog.architecture_names()
ROUTER = "model.layers.7.mlp.gate"


def shipped(name: str) -> Architecture:
    return read_config(catalog.architecture_config(name), name=name, source=name)


def checkpoint(name: str, format_name: str, **overrides: str | None) -> Checkpoint:
    formats = {path: None if own is None else weight_format(own) for path, own in overrides.items()}
    return Checkpoint(
        architecture=shipped(name),
        weight_format=weight_format(format_name),
        overrides=Overrides(formats),
    )


def once(found: Checkpoint) -> Checkpoint:
    """The same network with its stack of layers run once, so that no weight is read twice."""
    return replace(found, architecture=replace(found.architecture, loops=1))


def stated(name: str, section: Mapping[str, object], key: str = "quantization") -> Checkpoint:
    found = stated_checkpoint({key: section}, shipped(name))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "format_name", "total_gb"),
    [
        ("llama-3.1-8b", "bf16", 16.061),
        ("llama-3.1-8b", "8bit", 8.532),
        ("llama-3.1-8b", "4bit", 4.517),
        ("llama-3.1-8b", "mxfp4", 4.266),
        ("llama-3.1-8b", "nvfp4", 4.517),
        ("llama-3.1-8b", "mxfp8", 8.281),
        ("llama-3.2-1b", "4bit", 0.695),
        ("qwen3-30b-a3b", "4bit", 17.181),
    ],
)
def test_totals_that_mlx_lm_was_seen_to_have(name: str, format_name: str, total_gb: float) -> None:
    assert round(checkpoint(name, format_name).total_bytes / GB, 3) == total_gb


def test_llama_3_1_8b_in_4_bits_by_hand() -> None:
    llama = checkpoint("llama-3.1-8b", "4bit")
    table = 128256 * 4096
    layers = 32 * (4096 * (4096 + 2 * 1024 + 4096) + 3 * 4096 * 14336)
    norms = 65 * 4096 * 2
    assert llama.total_bytes == (layers + 2 * table) * 4.5 / 8 + norms == 4_517_404_672
    # A token gathers one row of the input table, so that table is not read.
    assert llama.weight_bytes_per_token == (layers + table) * 4.5 / 8 + norms == 4_221_902_848
    assert llama.head_bytes == llama.embedding_bytes == table * 4.5 / 8
    assert llama.kv_bytes_per_token == 131_072
    assert llama.kv_cache_bytes(1000) == 131_072_000
    # A cache in 8 bits keeps a scale and a bias of 16 bits for 64 numbers: 8.5 bits of 16.
    packed = replace(llama, cache_format=weight_format("8bit"))
    assert packed.kv_cache_bytes(1000) == 131_072_000 * 8.5 / 16


def test_a_tied_table_is_read_whole_because_it_is_the_head() -> None:
    llama = checkpoint("llama-3.2-1b", "4bit")
    assert llama.weight_bytes_per_token == llama.total_bytes == 695_242_752


def test_qwen3_30b_a3b_keeps_its_routers_in_8_bits() -> None:
    qwen = checkpoint("qwen3-30b-a3b", "4bit")
    (kind,) = qwen.layer_kinds
    assert kind.formats["mlp.gate"] == weight_format("8bit")
    expert = 3 * 2048 * 768 * 4.5 / 8
    assert qwen.expert_bytes(kind) == expert
    router = 128 * 2048 * 8.5 / 8
    attention = 2048 * (4096 + 2 * 512 + 4096) * 4.5 / 8
    norms = 2 * (48 * (2 * 2048 + 2 * 128) + 2048)
    table = 151936 * 2048 * 4.5 / 8
    read = 48 * (attention + router + 8 * expert) + table + norms
    assert qwen.weight_bytes_per_token == read == 1_717_645_312
    assert qwen.total_bytes == read + 48 * 120 * expert + table == 17_180_913_664


def test_mixtral_quantizes_its_routers_like_the_rest() -> None:
    (kind,) = checkpoint("mixtral-8x7b", "4bit").layer_kinds
    assert kind.formats["block_sparse_moe.gate"] == weight_format("4bit")
    (plain,) = checkpoint("qwen3-30b-a3b", "bf16").layer_kinds
    assert plain.formats["mlp.gate"] == weight_format("bf16")


def test_biases_stay_in_the_activation_dtype() -> None:
    qwen = shipped("qwen2.5-7b")
    (layer, _), *_ = qwen.layer_kinds
    query = layer.matrices[0]
    assert (query.columns, query.depth, query.bias) == (3584, 3584, True)
    in_4_bits = checkpoint("qwen2.5-7b", "4bit")
    expected = 3584 * 3584 * 4.5 / 8 + 3584 * 2
    assert in_4_bits.matrix_bytes(query, weight_format("4bit")) == expected


def test_a_depth_that_does_not_split_into_groups_stays_unquantized() -> None:
    # SmolLM2 135M is 576 wide: 9 groups of 64, but 4.5 of 128.
    (kind,) = checkpoint("smollm2-135m", "4bit-g128").layer_kinds
    assert kind.formats["self_attn.q_proj"] == weight_format("bf16")
    assert kind.formats["mlp.down_proj"] == weight_format("4bit-g128")
    (wide,) = checkpoint("smollm2-135m", "4bit-g128").in_float32().layer_kinds
    assert wide.formats["self_attn.q_proj"] == weight_format("fp32")


@pytest.mark.parametrize("format_name", ["bf16", "4bit", "q8_0", "mxfp4"])
def test_float32_doubles_what_was_16_bits_wide(format_name: str) -> None:
    narrow = checkpoint("llama-3.2-1b", format_name)
    wide = narrow.in_float32()
    stored_as = narrow.weight_format
    sixteen = {"float": 16.0, "affine": 32 / (stored_as.group_size or 1), "fp": 0.0}
    weights = narrow.architecture.params - 33 * 2048
    added = weights * sixteen[stored_as.family] / 8 + 33 * 2048 * 2
    assert wide.total_bytes - narrow.total_bytes == added
    assert wide.kv_bytes_per_token == 2 * narrow.kv_bytes_per_token


def test_an_override_changes_its_matrix_and_no_other() -> None:
    path = "model.layers.3.mlp.down_proj"
    plain = checkpoint("llama-3.1-8b", "4bit")
    mixed = checkpoint("llama-3.1-8b", "4bit", **{path: "8bit"})
    assert mixed.total_bytes - plain.total_bytes == 4096 * 14336 * 4 / 8
    assert [kind.repeats for kind in mixed.layer_kinds] == [31, 1]
    assert mixed.layer_kinds[1].formats["mlp.down_proj"] == weight_format("8bit")
    assert mixed.layer_formats(3) == mixed.layer_kinds[1].formats
    assert mixed.layer_formats(4) == plain.layer_formats(4)


def test_an_override_of_none_is_not_quantized() -> None:
    spared = checkpoint("llama-3.1-8b", "4bit", lm_head=None)
    assert spared.head_formats == {"lm_head": weight_format("bf16")}
    assert spared.head_bytes == 128256 * 4096 * 2
    assert spared.embedding_bytes == 128256 * 4096 * 4.5 / 8


def test_an_override_of_a_protected_matrix_wins() -> None:
    qwen = checkpoint("qwen3-30b-a3b", "4bit", **{ROUTER: "4bit"})
    assert qwen.layer_formats(7)["mlp.gate"] == weight_format("4bit")
    assert qwen.layer_formats(8)["mlp.gate"] == weight_format("8bit")


def test_the_table_of_a_tied_network_is_overridden_once() -> None:
    tied = checkpoint("llama-3.2-1b", "4bit", **{"model.embed_tokens": "6bit"})
    assert tied.head_bytes == tied.embedding_bytes == 128256 * 2048 * 6.5 / 8


def test_the_quantization_that_mlx_lm_writes() -> None:
    section: dict[str, object] = {
        "group_size": 64,
        "bits": 4,
        "mode": "affine",
        "model.embed_tokens": {"group_size": 32, "bits": 6},
        "model.layers.0.mlp.down_proj": False,
        "model.layers.1.mlp.down_proj": {"group_size": 32, "bits": 8, "mode": "mxfp8"},
        "vision_tower.patch_embedding": False,
    }
    found = stated("llama-3.1-8b", section)
    assert found.weight_format == weight_format("4bit")
    assert found.embedding_bytes == 128256 * 4096 * 7 / 8
    assert found.layer_formats(0)["mlp.down_proj"] == weight_format("bf16")
    assert found.layer_formats(1)["mlp.down_proj"] == weight_format("mxfp8")
    assert [kind.repeats for kind in found.layer_kinds] == [1, 1, 30]
    assert stated("llama-3.1-8b", section, "quantization_config") == found


def test_a_small_float_default_leaves_its_overrides_affine() -> None:
    # mlx-lm passes an entry without a mode to `to_quantized`, whose default is affine.
    section = {"group_size": 32, "bits": 4, "mode": "mxfp4", ROUTER: {"group_size": 64, "bits": 8}}
    found = stated("qwen3-30b-a3b", section)
    assert found.weight_format == weight_format("mxfp4")
    assert found.layer_formats(7)["mlp.gate"] == weight_format("8bit")


def test_a_router_that_a_config_does_not_name_is_like_the_rest() -> None:
    found = stated("qwen3-30b-a3b", {"group_size": 64, "bits": 4})
    assert found.layer_formats(7)["mlp.gate"] == weight_format("4bit")


def test_the_release_of_gpt_oss_quantizes_experts_alone() -> None:
    spared = ["model.layers.*.self_attn", "model.layers.*.mlp.router"]
    section = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [*spared, "model.embed_tokens", "lm_head"],
    }
    found = stated("gpt-oss-20b", section, "quantization_config")
    experts = 24 * 32 * 3 * 2880 * 2880
    rest = found.architecture.params - experts
    assert found.total_bytes == experts * 4.25 / 8 + rest * 2
    assert round(found.total_bytes / GB, 2) == 13.76


def test_a_config_without_quantization_states_none() -> None:
    assert stated_checkpoint({}, shipped("llama-3.1-8b")) is None
    assert stated_checkpoint({"quantization": None}, shipped("llama-3.1-8b")) is None


@pytest.mark.parametrize(
    ("section", "line"),
    [
        (
            {"bits": 4},
            "llama-3.1-8b: quantization.group_size: is missing; give a whole number of at least 1",
        ),
        (
            {"group_size": 64, "bits": 4, "mode": "int4"},
            "llama-3.1-8b: quantization.mode = 'int4': is not a mode of MLX; "
            "use affine, mxfp4, nvfp4, mxfp8",
        ),
        (
            {"group_size": 64, "bits": 4, "mode": "mxfp4"},
            "llama-3.1-8b: quantization.group_size = 64: is not what mxfp4 has; give 32",
        ),
        (
            {"group_size": 64, "bits": 4, "lm_head": {"bits": "six"}},
            "llama-3.1-8b: quantization.lm_head.bits = 'six': is text; "
            "give a whole number of at least 1",
        ),
    ],
)
def test_a_bad_quantization_is_refused_by_the_path_of_the_field(
    section: dict[str, object], line: str
) -> None:
    with pytest.raises(InputError) as refused:
        stated("llama-3.1-8b", section)
    assert str(refused.value) == line


def test_bits_that_mlx_does_not_have_are_refused() -> None:
    with pytest.raises(InputError, match=r"quantization\.bits = 7: with groups of 64 is not a"):
        stated("llama-3.1-8b", {"group_size": 64, "bits": 7})


@pytest.mark.parametrize("method", ["gptq", "bitsandbytes", "fp8", "mxfp4"])
def test_a_foreign_method_asks_for_a_format(method: str) -> None:
    with pytest.raises(InputError) as refused:
        stated("llama-3.1-8b", {"quant_method": method, "bits": 4}, "quantization_config")
    assert str(refused.value) == (
        f"llama-3.1-8b: quantization_config.quant_method = {method!r}: "
        "does not say what MLX will hold in memory; choose a format with --format"
    )


def test_equal_checkpoints_are_one_key() -> None:
    one = checkpoint("qwen3-30b-a3b", "4bit", lm_head="8bit")
    other = checkpoint("qwen3-30b-a3b", "4bit", lm_head="8bit")
    assert {one: 1}[other] == 1
    assert hash(one.overrides) == hash(other.overrides)
    assert one != checkpoint("qwen3-30b-a3b", "4bit")
    assert one != checkpoint("qwen3-30b-a3b", "8bit", lm_head="8bit")


@pytest.mark.parametrize("name", NAMES)
def test_layer_kinds_carry_every_layer_and_every_format(name: str) -> None:
    found = checkpoint(name, "4bit")
    assert sum(kind.repeats for kind in found.layer_kinds) == len(found.architecture.layers)
    for kind in found.layer_kinds:
        assert set(kind.formats) == {matrix.name for matrix in kind.layer.matrices}


@given(name=st.sampled_from(NAMES), one=st.sampled_from(FORMAT_NAMES), data=st.data())
def test_more_bits_per_weight_are_never_fewer_bytes(
    name: str, one: str, data: st.DataObject
) -> None:
    # Among formats of one group size, so that the same matrices are quantized.
    alike = [
        each
        for each in FORMAT_NAMES
        if weight_format(each).group_size == weight_format(one).group_size
    ]
    other = data.draw(st.sampled_from(alike))
    fewer, more = sorted((one, other), key=lambda each: weight_format(each).bits_per_weight)
    assert checkpoint(name, fewer).total_bytes <= checkpoint(name, more).total_bytes


@given(name=st.sampled_from(NAMES), format_name=st.sampled_from(FORMAT_NAMES))
def test_a_token_never_reads_more_than_there_is(name: str, format_name: str) -> None:
    found = once(checkpoint(name, format_name))
    assert found.head_bytes <= found.weight_bytes_per_token <= found.total_bytes


@given(name=st.sampled_from(NAMES), format_name=st.sampled_from(["4bit", "mxfp4", "bf16"]))
def test_selecting_every_expert_is_a_dense_network(name: str, format_name: str) -> None:
    found = once(checkpoint(name, format_name))
    layers = tuple(
        layer
        if layer.experts is None
        else replace(layer, experts=replace(layer.experts, top_k=layer.experts.num_experts))
        for layer in found.architecture.layers
    )
    dense = replace(found, architecture=replace(found.architecture, layers=layers))
    network = found.architecture
    looked_up = sum(
        found.matrix_bytes(table, found.matrix_format(network.outer_path(table), table))
        for table in network.lookups
    )
    looked_up += found.vector_bytes * sum(layer.table_params for layer in layers)
    gathered = looked_up + (0 if network.tied else found.embedding_bytes)
    assert dense.weight_bytes_per_token == dense.total_bytes - gathered
    assert dense.total_bytes == found.total_bytes
    assert dense.architecture.active_params == dense.architecture.params


@given(name=st.sampled_from(NAMES), format_name=st.sampled_from(["4bit", "8bit", "mxfp4"]))
def test_an_override_with_the_own_format_changes_nothing(name: str, format_name: str) -> None:
    plain = checkpoint(name, format_name)
    first = plain.architecture.layers[0].matrices[0]
    path = plain.architecture.layer_path(0, first)
    same = replace(plain, overrides=Overrides({path: plain.matrix_format(path, first)}))
    assert same.total_bytes == plain.total_bytes
    assert same.weight_bytes_per_token == plain.weight_bytes_per_token


def test_a_context_is_refused_beyond_the_limit_alone() -> None:
    limited = checkpoint("llama-3-8b", "4bit")
    limited.check_context(8192)
    with pytest.raises(InputError) as refusal:
        limited.check_context(8193)
    line = "context 8193: is beyond the 8192 tokens of llama-3-8b; give fewer tokens"
    assert str(refusal.value) == line
    unlimited = replace(limited.architecture, context_limit=None)
    replace(limited, architecture=unlimited).check_context(10**9)
