"""GLM 4.5, MiniMax M2 and Hy 3: dense layers first, shared experts, biases on the routers."""

from __future__ import annotations

import pytest

from model.errors import InputError
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint
from model.network.config import read_config
from model.network.weight_format import weight_format

TOY: dict[str, object] = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 1000,
    "moe_intermediate_size": 64,
    "num_experts_per_tok": 2,
}
GLM: dict[str, object] = {
    **TOY,
    "model_type": "glm4_moe",
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "use_qk_norm": False,
    "attention_bias": False,
}
HY: dict[str, object] = {**TOY, "model_type": "hy_v3", "num_experts": 8}
MINIMAX: dict[str, object] = {**TOY, "model_type": "minimax_m2", "num_local_experts": 8}
FAMILIES = [GLM, HY, MINIMAX]


def read(config: dict[str, object], **changes: object) -> Architecture:
    return read_config({**config, **changes}, name="toy", source="toy.json")


def sparse_layers(network: Architecture) -> list[int]:
    return [index for index, layer in enumerate(network.layers) if layer.experts is not None]


def refusal(config: dict[str, object], **changes: object) -> str:
    with pytest.raises(InputError) as refused:
        read(config, **changes)
    return str(refused.value)


def test_how_many_layers_are_dense_is_in_the_config() -> None:
    assert sparse_layers(read(GLM)) == [1, 2, 3]
    assert sparse_layers(read(GLM, first_k_dense_replace=3)) == [3]
    assert sparse_layers(read(MINIMAX)) == [0, 1, 2, 3]
    assert sparse_layers(read(HY)) == [1, 2, 3]
    assert sparse_layers(read(HY, mlp_layer_types=["sparse", "dense"] * 2)) == [0, 2]


@pytest.mark.parametrize("config", [GLM, HY])
def test_a_bare_router_is_never_quantized(config: dict[str, object]) -> None:
    stored = Checkpoint(architecture=read(config), weight_format=weight_format("4bit"))
    assert stored.layer_formats(3)["mlp.gate"] == weight_format("bf16")


def test_minimax_keeps_its_router_in_8_bits() -> None:
    stored = Checkpoint(architecture=read(MINIMAX), weight_format=weight_format("4bit"))
    assert stored.layer_formats(3)["block_sparse_moe.gate"] == weight_format("8bit")


@pytest.mark.parametrize(("config", "key"), [(GLM, "n_shared_experts"), (HY, "num_shared_experts")])
def test_shared_experts_are_one_mlp_as_wide_as_all_of_them(
    config: dict[str, object], key: str
) -> None:
    one, three = read(config, **{key: 1}), read(config, **{key: 3})
    assert three.params - one.params == 3 * 2 * 3 * 256 * 64  # sparse layers, added, matrices
    assert [siblings.name for siblings in three.layers[1].siblings][2:] == [
        "shared_gate_up",
        "shared_down",
    ]


@pytest.mark.parametrize("config", FAMILIES)
def test_every_router_has_a_bias_for_each_expert(config: dict[str, object]) -> None:
    inner_key = "intermediate_size" if config is MINIMAX else "moe_intermediate_size"
    total_key = next(
        key for key in ("n_routed_experts", "num_experts", "num_local_experts") if key in config
    )
    sparse = len(sparse_layers(read(config)))
    expert = 3 * 256 * int(str(config[inner_key]))
    added = read(config, **{total_key: 9}).params - read(config).params
    assert added == sparse * (expert + 256 + 1)


def test_norms_over_heads() -> None:
    # GLM has one for all query heads and one for all key heads; MiniMax has one for each head.
    assert read(GLM, use_qk_norm=True).params - read(GLM).params == 4 * 2 * 64
    with_norms, without = read(MINIMAX), read(MINIMAX, use_qk_norm=False)
    assert with_norms.params - without.params == 4 * (4 + 2) * 64


def test_biases_of_glm_are_on_query_key_and_value_alone() -> None:
    biased = read(GLM, attention_bias=True)
    assert biased.params - read(GLM).params == 4 * (4 + 2 * 2) * 64
    assert read(HY, attention_bias=True).params - read(HY).params == 4 * ((4 + 4) * 64 + 256)


def test_hy_stores_gate_and_up_of_an_expert_in_one_matrix() -> None:
    experts = read(HY).layers[1].experts
    assert experts is not None
    shapes = {each.name: (each.count, each.columns, each.depth) for each in experts.matrices}
    assert shapes == {
        "mlp.experts.gate_up_proj": (8, 128, 256),
        "mlp.experts.down_proj": (8, 256, 64),
    }


@pytest.mark.parametrize("config", FAMILIES)
def test_a_mixture_has_to_say_how_many_experts_a_token_gets(config: dict[str, object]) -> None:
    line = "toy.json: num_experts_per_tok: is missing; give a whole number of at least 1"
    assert refusal(config, num_experts_per_tok=None) == line
    assert "num_experts_per_tok = 0: is below 1" in refusal(config, num_experts_per_tok=0)
    assert "num_experts_per_tok = 9: is more than the 8" in refusal(config, num_experts_per_tok=9)


@pytest.mark.parametrize(
    ("config", "changes", "line"),
    [
        (
            GLM,
            {"n_routed_experts": None},
            "n_routed_experts: is missing; give a whole number of at least 1",
        ),
        (GLM, {"use_qk_norm": None}, "use_qk_norm: is missing; give true or false"),
        (
            HY,
            {"mlp_layer_types": ["dense"]},
            "mlp_layer_types = ['dense']: has 1 entries; name one type for each of the 4 layers",
        ),
        (
            HY,
            {"mlp_layer_types": ["moe"] * 4},
            "mlp_layer_types = ['moe', 'moe', 'moe', 'moe']: "
            "holds 'moe'; name dense or sparse ones",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    config: dict[str, object], changes: dict[str, object], line: str
) -> None:
    assert refusal(config, **changes) == f"toy.json: {line}"
