"""Networks with a state of fixed size: which layers have one, how large it is, and bad configs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from model.errors import InputError
from model.network.architecture import Architecture
from model.network.config import read_config
from model.network.mixer import MixerKind, Recurrence

SHARED: dict[str, object] = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
}
QWEN: dict[str, object] = {
    **SHARED,
    "model_type": "qwen3_5",
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
}
EXPERTS: dict[str, object] = {
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
}
LFM2: dict[str, object] = {
    **SHARED,
    "model_type": "lfm2",
    "conv_L_cache": 3,
    "conv_bias": False,
    "block_auto_adjust_ff_dim": True,
    "block_multiple_of": 64,
    "full_attn_idxs": [2, 5],
}
NEMOTRON: dict[str, object] = {
    **SHARED,
    "model_type": "nemotron_h",
    "hybrid_override_pattern": "M*-M",
    "mamba_num_heads": 4,
    "mamba_head_dim": 16,
    "ssm_state_size": 32,
    "n_groups": 2,
    "conv_kernel": 4,
    "use_conv_bias": False,
    "mamba_proj_bias": False,
    "attention_bias": False,
    "mlp_bias": False,
}
LING: dict[str, object] = {
    **SHARED,
    **EXPERTS,
    "model_type": "bailing_hybrid",
    "architectures": ["BailingMoeV3ForCausalLM"],
    "layer_group_size": 3,
    "head_dim": 32,
    "q_lora_rank": None,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "moe_shared_expert_intermediate_size": 64,
}


def read(config: Mapping[str, object], **changes: object) -> Architecture:
    return read_config({**config, **changes}, name="toy", source="toy.json")


def growing(architecture: Architecture) -> list[int]:
    """The layers whose memory grows with the context."""
    return [
        index
        for index, layer in enumerate(architecture.layers)
        if layer.mixer is not None and layer.mixer.kind is not MixerKind.RECURRENT
    ]


def first_state(architecture: Architecture) -> Recurrence:
    mixer = architecture.layers[0].mixer
    assert isinstance(mixer, Recurrence)
    return mixer


def test_which_layers_attend() -> None:
    assert growing(read(QWEN)) == [3, 7]
    assert growing(read(QWEN, full_attention_interval=3)) == [2, 5]
    assert growing(read(LFM2)) == [2, 5]
    types = ["conv"] * 7 + ["full_attention"]
    assert growing(read(LFM2, full_attn_idxs=None, layer_types=types)) == [7]
    assert growing(read(NEMOTRON)) == [1]
    # Whole groups of three end in attention, and what is left over attends as well.
    assert growing(read(LING)) == [2, 5, 6, 7]


def test_a_delta_net_keeps_a_matrix_for_each_value_head() -> None:
    state = first_state(read(QWEN))
    channels = 2 * 2 * 16 + 4 * 32
    assert state.state_elements == 4 * 16 * 32
    assert state.conv_elements == 3 * channels
    assert state.macs == 4 * 4 * 16 * 32 + 4 * channels
    assert state.state_bytes(2) == 4 * 4 * 16 * 32 + 2 * 3 * channels


def test_a_mamba_head_keeps_its_width_times_the_state() -> None:
    state = first_state(read(NEMOTRON))
    channels = 4 * 16 + 2 * 2 * 32
    assert state.state_elements == 4 * 16 * 32
    assert state.conv_elements == 3 * channels
    assert state.macs == 3 * 4 * 16 * 32 + 4 * channels


def test_a_state_is_the_same_at_every_context() -> None:
    state = first_state(read(QWEN))
    assert state.cached_tokens(1000) == 0
    assert state.kept_bytes(1000, 2) == state.kept_bytes(0, 2) == state.state_bytes(2)
    assert state.macs_per_row(1000) == state.macs
    assert state.cache_read(1000, 2).read_bytes == 2 * state.state_bytes(2)
    assert not read(QWEN).can_rewind


def test_the_same_delta_net_is_stored_in_more_matrices_by_its_successor() -> None:
    older = read(QWEN, model_type="qwen3_next", head_dim=32, num_experts=0)
    newer = read(QWEN)
    assert older.params == newer.params
    assert [len(group.matrices) for group in older.layers[0].mixer_siblings] == [2, 1]
    assert [len(group.matrices) for group in newer.layers[0].mixer_siblings] == [4, 1]
    assert older.module_prefix == ""
    assert newer.module_prefix == "language_model."


def test_experts_make_every_layer_of_qwen_3_5_a_mixture() -> None:
    mixture = read(QWEN, model_type="qwen3_5_moe", intermediate_size=None, **EXPERTS)
    assert all(layer.experts is not None for layer in mixture.layers)
    assert all(layer.experts is None for layer in read(QWEN).layers)


@pytest.mark.parametrize(
    ("changes", "inner"),
    [
        ({"block_auto_adjust_ff_dim": False}, 512),
        ({}, 384),  # 2/3 of 512 are 341, rounded up to a multiple of 64
        ({"block_ffn_dim_multiplier": 1.5}, 512),  # 511, rounded up
        ({"block_ff_dim": 96}, 64),
    ],
)
def test_lfm2_adjusts_its_inner_size(changes: dict[str, object], inner: int) -> None:
    gate_up, _ = read(LFM2, **changes).layers[0].mlp_siblings
    assert {matrix.columns for matrix in gate_up.matrices} == {inner}


def test_a_layer_of_nemotron_is_a_mixer_or_an_mlp() -> None:
    nemotron = read(NEMOTRON)
    assert [(layer.mixer is not None, layer.has_mlp) for layer in nemotron.layers] == [
        (True, False),
        (True, False),
        (False, True),
        (True, False),
    ]
    words = ["mamba", "attention", "mlp", "conv"]
    assert read(NEMOTRON, hybrid_override_pattern=None, layers_block_type=words) == nemotron
    assert read(NEMOTRON, hybrid_override_pattern=list("M*-M")) == nemotron


def test_the_decay_of_ling_has_a_matrix_of_its_own() -> None:
    reads, _ = read(LING).layers[0].mixer_siblings
    assert [matrix.columns for matrix in reads.matrices] == [8 * 32] * 5 + [8]
    assert [matrix.quantizes for matrix in reads.matrices] == [True] * 5 + [False]


@pytest.mark.parametrize(
    ("config", "changes", "line"),
    [
        (
            QWEN,
            {"linear_num_value_heads": 5},
            "linear_num_value_heads = 5: is not a multiple of the 2 key heads; "
            "give a multiple of linear_num_key_heads",
        ),
        (
            QWEN,
            {"linear_key_head_dim": None},
            "linear_key_head_dim: is missing; give a whole number of at least 1",
        ),
        (
            QWEN,
            {"text_config": {**QWEN, "full_attention_interval": 0}},
            "text_config.full_attention_interval = 0: is below 1; "
            "give a whole number of at least 1",
        ),
        (
            {**QWEN, **EXPERTS, "model_type": "qwen3_next"},
            {"mlp_only_layers": ["first"]},
            "mlp_only_layers = ['first']: holds more than whole numbers; "
            "give the numbers of the layers without experts",
        ),
        (
            LFM2,
            {"full_attn_idxs": [2, 8]},
            "full_attn_idxs = [2, 8]: holds what is no layer's number; "
            "give layer numbers from 0 to 7",
        ),
        (
            LFM2,
            {"full_attn_idxs": None},
            "layer_types: has 0 entries; name one type for each of the 8 layers",
        ),
        (
            LFM2,
            {"full_attn_idxs": None, "layer_types": ["conv"] * 7 + ["mamba"]},
            "layer_types = ['conv', 'conv', 'conv', 'conv', 'conv', 'conv', 'conv', ...: "
            "holds 'mamba'; this family has conv and full_attention",
        ),
        (
            LFM2,
            {"block_ffn_dim_multiplier": "1.0"},
            "block_ffn_dim_multiplier = '1.0': is no factor of a size; "
            "give a number from 0.01 to 100",
        ),
        (
            NEMOTRON,
            {"hybrid_override_pattern": "M*x"},
            "hybrid_override_pattern = 'M*x': holds 'x'; "
            "mlx-lm knows M, *, E and -, or the words mamba, attention, moe and mlp",
        ),
        (
            NEMOTRON,
            {"hybrid_override_pattern": None},
            "layer_types: names 0 layers; "
            "name 1 to 4096 layers, as hybrid_override_pattern or layers_block_type",
        ),
        (
            NEMOTRON,
            {"n_groups": 3},
            "n_groups = 3: does not divide the 4 heads; give a divisor of mamba_num_heads",
        ),
        (
            LING,
            {"architectures": ["BailingMoeV2ForCausalLM"]},
            "architectures = ['BailingMoeV2ForCausalLM']: is not known under this model_type; "
            "known is ['BailingMoeV3ForCausalLM']",
        ),
        (
            LING,
            {"no_kda_lora": False},
            "no_kda_lora = False: is a variant that mlx-lm does not run; give true",
        ),
    ],
)
def test_a_bad_config_is_refused_by_the_path_of_the_field(
    config: dict[str, object], changes: dict[str, object], line: str
) -> None:
    with pytest.raises(InputError) as refused:
        read(config, **changes)
    assert str(refused.value) == f"toy.json: {line}"
