"""GPT-2, Llama 4, Muse Glimmer, Nanbeige, K2 Horizon and the first OLMo."""

from __future__ import annotations

import pytest

from model.errors import InputError
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint
from model.network.config import read_config
from model.network.mixer import Attention
from model.network.weight_format import weight_format

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
LLAMA4: dict[str, object] = {
    **LLAMA,
    "head_dim": 64,
    "attention_bias": False,
    "attention_chunk_size": 128,
    "interleave_moe_layer_step": 2,
    "intermediate_size_mlp": 1024,
    "num_local_experts": 4,
    "num_experts_per_tok": 1,
}
GPT2: dict[str, object] = {
    "model_type": "gpt2",
    "n_embd": 256,
    "n_head": 4,
    "n_layer": 3,
    "n_positions": 128,
    "vocab_size": 1000,
}


def read(config: dict[str, object], **changes: object) -> Architecture:
    return read_config({**config, **changes}, name="toy", source="toy.json")


def llama4(**changes: object) -> Architecture:
    return read({"model_type": "llama4", "text_config": {**LLAMA4, **changes}})


def windows(network: Architecture) -> list[int | None]:
    return [each.mixer.window for each in network.layers if isinstance(each.mixer, Attention)]


def refusal(config: dict[str, object], **changes: object) -> str:
    with pytest.raises(InputError) as refused:
        read(config, **changes)
    return str(refused.value)


def test_a_chunk_is_a_window_and_every_fourth_layer_has_none() -> None:
    assert windows(llama4()) == [128, 128, 128, None] * 2
    assert llama4().kv_bytes(1000) == (6 * 128 + 2 * 1000) * 2 * 2 * 64 * 2


def test_llama_4_interleaves_dense_layers() -> None:
    sparse = [layer.experts is not None for layer in llama4().layers]
    assert sparse == [False, True] * 4
    assert all(layer.experts for layer in llama4(interleave_moe_layer_step=1).layers)
    dense, mixed = llama4().layers[:2]
    assert dense.siblings[2].columns == 2 * 1024
    assert mixed.siblings[2].columns == 2 * 512  # the shared expert


def test_a_loop_runs_the_stack_again_with_another_cache_and_the_same_weights() -> None:
    once = read(LLAMA, model_type="nanbeige")
    twice = read(LLAMA, model_type="nanbeige", num_loops=2)
    assert once.params == twice.params == read(LLAMA).params
    assert twice.kv_bytes_per_token() == 2 * once.kv_bytes_per_token()
    assert twice.blocks == 2 * once.blocks
    head = 2 * 1000 * 256
    assert twice.flops_per_row(100) - head == 2 * (once.flops_per_row(100) - head)
    in_4_bits = [
        Checkpoint(architecture=each, weight_format=weight_format("4bit")) for each in (once, twice)
    ]
    outside = in_4_bits[0].head_bytes + 256 * 2
    layers = [each.weight_bytes_per_token - outside for each in in_4_bits]
    assert layers[1] == 2 * layers[0]
    assert in_4_bits[0].total_bytes == in_4_bits[1].total_bytes


def test_losses_of_loops_count_the_loops() -> None:
    losses = read(LLAMA, model_type="nanbeige", num_loops=9, loop_loss_weights=[0.2, 0.3])
    assert losses.loops == 3
    assert read(LLAMA, model_type="nanbeige", num_loops=4, loop_loss_weights=[]).loops == 4


def test_the_first_olmo_is_a_llama_without_parameters_in_its_norms() -> None:
    assert read(LLAMA).params - read(LLAMA, model_type="olmo").params == (2 * 8 + 1) * 256


@pytest.mark.parametrize("model_type", ["nanbeige", "k2_horizon", "olmo"])
def test_they_are_untied_unless_stated(model_type: str) -> None:
    assert not read(LLAMA, model_type=model_type, tie_word_embeddings=None).tied
    assert read(LLAMA, model_type=model_type, tie_word_embeddings=True).tied


@pytest.mark.parametrize("model_type", ["nanbeige", "k2_horizon", "olmo"])
def test_they_never_slide(model_type: str) -> None:
    types = ["sliding_attention"] * 8
    found = read(LLAMA, model_type=model_type, layer_types=types, sliding_window=64)
    assert windows(found) == [None] * 8


def test_k2_horizon_has_heads_of_128_and_a_prefix() -> None:
    found = read(LLAMA, model_type="k2_horizon")
    layer = found.layers[0]
    assert isinstance(layer.mixer, Attention)
    assert layer.mixer.head_dim == 128
    path = "language_model.model.layers.0.self_attn.q_proj"
    assert found.layer_path(0, layer.matrices[0]) == path


def test_muse_gates_what_attention_returns() -> None:
    found = read(LLAMA, model_type="muse_glimmer", head_dim=64)
    qkv = found.layers[0].siblings[0]
    assert [each.columns for each in qkv.matrices] == [256, 128, 128, 256]
    assert windows(found) == [2048, 2048, 2048, None] * 2
    # The gate, and two more norms in each layer.
    assert found.params - read(LLAMA).params == 8 * (256 * 256 + 2 * 256)


def test_muse_is_the_same_inside_and_outside() -> None:
    flat = read(LLAMA, model_type="muse_glimmer")
    nested = read({"model_type": "muse_glimmer", "text_config": LLAMA})
    assert nested.layers == flat.layers
    assert nested.outer_path(nested.head) == flat.outer_path(flat.head) == "lm_head"


def test_gpt2_by_hand() -> None:
    found = read(GPT2)
    layer = (256 + 1) * (3 * 256 + 256) + (256 + 1) * 1024 + (1024 + 1) * 256 + 4 * 256
    assert found.params == 3 * layer + (1000 + 128) * 256 + 2 * 256
    assert found.tied
    assert found.context_limit == 128
    assert found.kv_bytes_per_token() == 3 * 2 * 256 * 2
    # A token gathers its position; the table of words is the head.
    weights = 3 * 12 * 256 * 256 + 1000 * 256
    assert found.flops_per_row() == 2 * weights
    stored = Checkpoint(architecture=found, weight_format=weight_format("4bit"))
    assert stored.total_bytes - stored.weight_bytes_per_token == 128 * 256 * 4.5 / 8


@pytest.mark.parametrize(
    ("config", "changes", "line"),
    [
        (
            GPT2,
            {"n_head": 3},
            "n_head = 3: does not divide the width of 256; give a divisor of n_embd",
        ),
        (GPT2, {"n_positions": None}, "n_positions: is missing; give a whole number of at least 1"),
        (
            LLAMA,
            {"model_type": "nanbeige", "loop_share_kv": True},
            "loop_share_kv = True: "
            "shares the keys and values of loops, which mlx-lm does not run; give false",
        ),
        (
            LLAMA,
            {"model_type": "nanbeige", "num_loops": 0},
            "num_loops = 0: is below 1; give a whole number of at least 1",
        ),
        (LLAMA, {"model_type": "llama4"}, "text_config: is missing; give an object in braces"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    config: dict[str, object], changes: dict[str, object], line: str
) -> None:
    assert refusal(config, **changes) == f"toy.json: {line}"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"num_experts_per_tok": None},
            "num_experts_per_tok: is missing; give a whole number of at least 1",
        ),
        (
            {"num_experts_per_tok": 5},
            "num_experts_per_tok = 5: is more than the 4 experts; give at most num_local_experts",
        ),
        (
            {"attention_chunk_size": None},
            "attention_chunk_size: is missing; give a whole number of at least 1",
        ),
    ],
)
def test_a_bad_llama_4_is_refused_in_one_line(changes: dict[str, object], line: str) -> None:
    with pytest.raises(InputError) as refused:
        llama4(**changes)
    assert str(refused.value) == f"toy.json: text_config.{line}"
