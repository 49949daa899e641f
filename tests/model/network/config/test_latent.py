"""Latent attention: which matrices a config makes, what a pass does with them, and bad configs."""

from __future__ import annotations

import pytest

from model.errors import InputError
from model.network.architecture import Architecture
from model.network.config import read_config
from model.network.mixer import LatentAttention

DEEPSEEK: dict[str, object] = {
    "model_type": "deepseek_v3",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 1000,
    "q_lora_rank": 96,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 48,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "first_k_dense_replace": 1,
}


def read(**changes: object) -> Architecture:
    return read_config({**DEEPSEEK, **changes}, name="toy", source="toy.json")


def latent(architecture: Architecture) -> LatentAttention:
    mixer = architecture.layers[0].mixer
    assert isinstance(mixer, LatentAttention)
    return mixer


def group_names(architecture: Architecture) -> list[str]:
    return [siblings.name for siblings in architecture.layers[0].mixer_siblings]


def test_queries_pass_a_rank_of_their_own_unless_it_is_null() -> None:
    assert group_names(read()) == ["q_kv_down", "q_up", "out"]
    assert group_names(read(q_lora_rank=None)) == ["q_kv", "out"]
    assert group_names(read(model_type="deepseek_v2")) == ["q_kv_down", "q_up", "kv_up", "out"]


def test_two_ways_to_unfold_have_equal_weights() -> None:
    stacked, plain = read(), read(model_type="deepseek_v2")
    corrections = 3 * 8  # V3's three routers have one for each expert
    assert stacked.params - corrections == plain.params
    assert stacked.flops_per_row() == plain.flops_per_row()


def test_mlx_lm_keeps_what_v2_unfolds() -> None:
    stacked, plain = latent(read()), latent(read(model_type="deepseek_v2"))
    assert stacked.kv_elements_per_token() == plain.kv_elements_per_token() == 64 + 16
    assert stacked.cached_elements_per_token() == 64 + 16
    assert plain.cached_elements_per_token() == 8 * (32 + 16 + 48)


def test_several_rows_read_what_they_unfold() -> None:
    mixer = latent(read())
    one, several = mixer.cache_read(100, 2), mixer.unfolded_read(100, 2)
    # Each latent is read; eight keys of 32 and values of 48 are written and read again.
    assert one.read_bytes == 100 * 80 * 2
    assert several.read_bytes == 100 * (80 + 2 * 8 * (32 + 48)) * 2
    # Scores with latent and rotary key and a sum of latents, against those of plain heads.
    assert one.columns == 8 * (64 + 16 + 64)
    assert several.columns == 8 * (32 + 16 + 48)


def test_layers_are_dense_before_the_first_mixture_and_between_them() -> None:
    def sparse(**changes: object) -> list[bool]:
        return [layer.experts is not None for layer in read(**changes).layers]

    assert sparse() == [False, True, True, True]
    assert sparse(moe_layer_freq=2) == [False, False, True, False]
    assert sparse(first_k_dense_replace=None) == [True] * 4
    assert sparse(first_k_dense_replace=None, model_type="glm4_moe_lite") == [
        False,
        True,
        True,
        True,
    ]
    assert sparse(n_routed_experts=None) == [False] * 4


def test_a_network_of_mixtures_needs_no_size_of_a_dense_mlp() -> None:
    assert read(first_k_dense_replace=0, intermediate_size=None).params


def test_shared_experts_are_one_mlp() -> None:
    gate_up, down = read().layers[1].mlp_siblings
    assert {matrix.columns for matrix in gate_up.matrices} == {2 * 64}
    assert [(each.name, each.depth) for each in down.matrices] == [
        ("mlp.shared_experts.down_proj", 2 * 64)
    ]
    assert read(n_shared_experts=None).layers[1].mlp_siblings == ()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"kv_lora_rank": None},
            "toy.json: kv_lora_rank: is missing; give a whole number of at least 1",
        ),
        (
            {"qk_rope_head_dim": 0},
            "toy.json: qk_rope_head_dim = 0: is below 1; give a whole number of at least 1",
        ),
        (
            {"v_head_dim": "128"},
            "toy.json: v_head_dim = '128': is text; give a whole number of at least 1",
        ),
        (
            {"num_experts_per_tok": 9},
            "toy.json: num_experts_per_tok = 9: is more than the 8 experts; "
            "give at most n_routed_experts",
        ),
        (
            {"n_shared_experts": 0},
            "toy.json: n_shared_experts = 0: is below 1; give a whole number of at least 1",
        ),
    ],
)
def test_a_bad_config_is_refused_by_the_path_of_the_field(
    changes: dict[str, object], line: str
) -> None:
    with pytest.raises(InputError) as refused:
        read(**changes)
    assert str(refused.value) == line


def test_an_absent_rank_of_the_queries_is_not_null() -> None:
    absent = {key: value for key, value in DEEPSEEK.items() if key != "q_lora_rank"}
    with pytest.raises(InputError) as refused:
        read_config(absent, name="toy", source="toy.json")
    line = "toy.json: q_lora_rank: is missing; give a whole number of at least 1"
    assert str(refused.value) == line
