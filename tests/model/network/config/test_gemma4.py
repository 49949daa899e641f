"""Gemma 4: which layers keep, share and see what, and the inputs of single layers."""

from __future__ import annotations

import pytest

from model import catalog
from model.errors import InputError
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint
from model.network.config import read_config
from model.network.layer import Layer
from model.network.mixer import Attention
from model.network.weight_format import weight_format

TOY: dict[str, object] = {
    "model_type": "gemma4_text",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 10,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "num_kv_shared_layers": 0,
    "hidden_size_per_layer_input": 0,
}
MIXTURE = {"enable_moe_block": True, "num_experts": 8, "top_k_experts": 2}


def read(**changes: object) -> Architecture:
    return read_config({**TOY, **changes}, name="toy", source="toy.json")


def shipped(name: str) -> Architecture:
    return read_config(catalog.architecture_config(name), name=name, source=name)


def attention(layer: Layer) -> Attention:
    assert isinstance(layer.mixer, Attention)
    return layer.mixer


def names(layer: Layer) -> list[str]:
    return [matrix.name.rpartition(".")[2] for matrix in layer.matrices]


def refusal(**changes: object) -> str:
    with pytest.raises(InputError) as refused:
        read(**changes)
    return str(refused.value)


def test_every_fifth_layer_sees_everything_through_wider_heads() -> None:
    mixers = [attention(layer) for layer in read().layers]
    assert [mixer.window for mixer in mixers] == ([512] * 4 + [None]) * 2
    assert [mixer.head_dim for mixer in mixers] == ([256] * 4 + [512]) * 2
    every_third = read(sliding_window_pattern=3).layers
    assert [i for i, layer in enumerate(every_third) if attention(layer).window is None] == [
        2,
        5,
        8,
    ]


def test_the_last_layers_read_the_cache_of_an_earlier_one() -> None:
    network = read(num_kv_shared_layers=5)
    owners = [attention(layer).owns_cache for layer in network.layers]
    assert owners == [True] * 5 + [False] * 5
    assert names(network.layers[0])[:4] == ["q_proj", "k_proj", "v_proj", "o_proj"]
    assert names(network.layers[5])[:2] == ["q_proj", "o_proj"]
    # Four windows and one whole layer keep something; all ten look at their past.
    local, whole = 2 * 2 * 256 * 2, 2 * 2 * 512 * 2
    assert network.kv_bytes_per_token() == 4 * local + whole
    assert network.kv_bytes(1000) == 4 * 512 * local + 1000 * whole
    grown = network.flops_per_row(1000) - network.flops_per_row()
    assert grown == 2 * 2 * 4 * 2 * (4 * 512 * 256 + 1000 * 512)


def test_layers_without_a_cache_have_a_wider_mlp_unless_told_otherwise() -> None:
    def inner(network: Architecture) -> list[int]:
        return [
            next(each.columns for each in layer.matrices if each.name == "mlp.up_proj")
            for layer in network.layers
        ]

    assert inner(read(num_kv_shared_layers=5)) == [512] * 5 + [1024] * 5
    assert inner(read(num_kv_shared_layers=5, use_double_wide_mlp=False)) == [512] * 10


def test_a_key_that_is_its_own_value_is_still_cached_twice() -> None:
    network = read(attention_k_eq_v=True, num_global_key_value_heads=1)
    local, whole = network.layers[0], network.layers[4]
    assert names(local)[:4] == ["q_proj", "k_proj", "v_proj", "o_proj"]
    assert names(whole)[:3] == ["q_proj", "k_proj", "o_proj"]
    assert attention(whole).kv_elements_per_token() == 2 * 1 * 512
    # Without it, the count of heads for whole layers is not read.
    assert attention(read(num_global_key_value_heads=1).layers[4]).kv_heads == 2


def test_every_layer_may_have_an_input_of_its_own() -> None:
    network = read(hidden_size_per_layer_input=64, vocab_size_per_layer_input=500)
    (table,) = network.lookups
    assert (table.name, table.columns, table.depth) == ("model.embed_tokens_per_layer", 500, 640)
    ((projection,),) = [siblings.matrices for siblings in network.entry]
    assert (projection.columns, projection.depth) == (640, 256)
    without = read()
    # A gate, its way back and a norm in each layer; table, projection and a norm before them.
    added = 10 * (2 * 64 * 256 + 256) + 500 * 640 + 640 * 256 + 64
    assert network.params - without.params == added
    assert network.flops_per_row() - without.flops_per_row() == 2 * (10 * 2 * 64 * 256 + 640 * 256)


def test_a_token_gathers_one_row_of_the_table_of_inputs() -> None:
    stored = Checkpoint(architecture=shipped("gemma-4-e2b"), weight_format=weight_format("4bit"))
    table = 262_144 * 35 * 256 * 4.5 / 8
    assert stored.total_bytes - stored.weight_bytes_per_token == table


def test_e2b_by_hand() -> None:
    # 35 layers of 1536 and 8 query heads, every fifth with heads of 512 and the others of 256.
    network = shipped("gemma-4-e2b")
    queries = 28 * 8 * 256 + 7 * 8 * 512
    keys = 2 * (12 * 256 + 3 * 512)  # of the first 15 layers, whose caches the other 20 read
    mlp = (15 * 6144 + 20 * 12_288) * 3
    inputs = 35 * 256
    matrices = 1536 * (2 * queries + keys + mlp + 2 * inputs + inputs + 262_144)
    norms = 35 * (5 * 1536 + 1) + (28 * 256 + 7 * 512) + keys // 2 + 256 + 1536
    assert network.params == matrices + 262_144 * inputs + norms == 4_628_569_379
    assert network.kv_bytes_per_token() == 2 * keys == 18_432


def test_the_mixture_keeps_its_dense_mlp_and_its_routers_in_8_bits() -> None:
    layer = read(**MIXTURE, moe_intermediate_size=64).layers[0]
    assert layer.experts is not None
    assert layer.experts.router.protected
    assert [siblings.name for siblings in layer.siblings] == ["qkv", "out", "gate_up", "down"]
    assert (layer.experts.num_experts, layer.experts.top_k) == (8, 2)


@pytest.mark.parametrize("model_type", ["gemma4", "gemma4_unified"])
def test_inside_a_vision_model_the_vocabulary_is_outside(model_type: str) -> None:
    config = {"model_type": model_type, "vocab_size": 500, "text_config": TOY}
    network = read_config(config, name="toy", source="toy.json")
    assert network.vocab_size == 500
    assert network.outer_path(network.head) == "language_model.model.embed_tokens"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"num_kv_shared_layers": 6},
            "num_kv_shared_layers = 6: at 6 leaves no earlier layer of full attention to share "
            "with; give fewer, or 0 for none",
        ),
        (
            {"num_kv_shared_layers": None, "num_hidden_layers": 20},
            "num_kv_shared_layers = 20: at 20 leaves no earlier layer of full attention to share "
            "with; give fewer, or 0 for none",
        ),
        (
            {"num_kv_shared_layers": -1},
            "num_kv_shared_layers = -1: is below 0; give a whole number of at least 0",
        ),
        (
            {"attention_k_eq_v": True, "num_global_key_value_heads": 3},
            "num_global_key_value_heads = 3: does not divide the 4 attention heads; "
            "give a divisor of num_attention_heads",
        ),
        (
            {"enable_moe_block": True, "top_k_experts": 2},
            "num_experts: is missing; give a whole number of at least 1",
        ),
        (
            {"enable_moe_block": True, "num_experts": 8},
            "top_k_experts: is missing; give a whole number of at least 1",
        ),
        (
            {**MIXTURE, "top_k_experts": 9},
            "top_k_experts = 9: is more than the 8 experts; give at most num_experts",
        ),
        (
            {"layer_types": ["full_attention"] * 9 + ["chunked_attention"]},
            "layer_types = ['full_attention', 'full_attention', 'full_attention', 'f...: "
            "holds 'chunked_attention'; this family has full_attention and sliding_attention",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(changes: dict[str, object], line: str) -> None:
    assert refusal(**changes) == f"toy.json: {line}"
