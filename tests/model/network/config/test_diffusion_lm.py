"""Diffusion language models: their layers, and what their engine keeps in 8 bits."""

from __future__ import annotations

from typing import cast

import pytest

from model import catalog
from model.errors import InputError
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint
from model.network.config import read_config
from model.network.weight_format import weight_format

LLADA: dict[str, object] = {
    "model_type": "llada",
    "d_model": 256,
    "n_heads": 4,
    "n_layers": 3,
    "mlp_hidden_size": 512,
    "vocab_size": 990,
    "embedding_size": 1000,
    "max_sequence_length": 4096,
    "weight_tying": False,
}
LLADA2: dict[str, object] = {
    "model_type": "llada2_moe",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
}


def read(config: dict[str, object], **changes: object) -> Architecture:
    return read_config({**config, **changes}, name="toy", source="toy.json")


def shipped(name: str) -> Architecture:
    return read_config(catalog.architecture_config(name), name=name, source=name)


def refusal(config: dict[str, object], **changes: object) -> str:
    with pytest.raises(InputError) as refused:
        read(config, **changes)
    return str(refused.value)


def test_llada_is_a_llama_under_other_names() -> None:
    llada = read(LLADA)
    llama = read_config(
        {
            "model_type": "llama",
            "hidden_size": 256,
            "intermediate_size": 512,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "vocab_size": 1000,
            "tie_word_embeddings": False,
        },
        name="toy",
        source="toy.json",
    )
    assert llada.params == llama.params
    assert llada.flops_per_row(100) == llama.flops_per_row(100)
    assert llada.context_limit == 4096
    assert read(LLADA, embedding_size=None).vocab_size == 990


def test_biases_of_llada_come_where_they_are_asked_for() -> None:
    plain = read(LLADA)
    assert read(LLADA, include_qkv_bias=True).params - plain.params == 3 * 3 * 256
    # Query, key, value, out and down of 256, gate and up of 512, and each norm.
    everything = 3 * (5 * 256 + 2 * 512 + 2 * 256) + 256
    assert read(LLADA, include_bias=True).params - plain.params == everything


def test_dream_has_the_matrices_of_qwen_2_5() -> None:
    dream, qwen = shipped("dream-v0-7b"), shipped("qwen2.5-7b")
    assert dream.layers == qwen.layers
    assert dream.params == qwen.params == 7_615_616_512
    stated = catalog.architecture_config("dream-v0-7b")
    assert not read(stated, tie_word_embeddings=None).tied


def test_llada_2_has_a_dense_layer_first_unless_told_otherwise() -> None:
    def sparse(**changes: object) -> list[bool]:
        return [layer.experts is not None for layer in read(LLADA2, **changes).layers]

    assert sparse() == [False, True, True, True]
    assert sparse(first_k_dense_replace=0) == [True] * 4


def test_llada_2_may_have_no_shared_expert_and_no_norms_over_heads() -> None:
    shared = 3 * 3 * 256 * 64
    assert read(LLADA2).params - read(LLADA2, num_shared_experts=0).params == shared
    assert read(LLADA2).params - read(LLADA2, use_qk_norm=False).params == 4 * 2 * 64


def test_the_router_of_llada_2_is_never_quantized() -> None:
    stored = Checkpoint(architecture=shipped("llada2.0-mini"), weight_format=weight_format("4bit"))
    formats = stored.layer_formats(1)
    assert formats["mlp.gate"] == weight_format("bf16")
    assert formats["attention.query_key_value"] == weight_format("4bit")


def test_diffusion_gemma_adds_an_mlp_for_its_last_guess() -> None:
    diffusion, gemma = shipped("diffusiongemma-26b-a4b"), shipped("gemma-4-26b-a4b")
    # The MLP of 2112 with one norm, and a second scale for each layer.
    assert diffusion.params - gemma.params == 3 * 2816 * 2112 + 2816 + 30 == 17_845_022
    added = diffusion.flops_per_row(2000) - gemma.flops_per_row(2000)
    assert added == 2 * 3 * 2816 * 2112
    assert diffusion.kv_bytes(2000) == gemma.kv_bytes(2000)


def test_diffusion_gemma_quantizes_experts_harder_than_the_rest() -> None:
    name = "diffusiongemma-26b-a4b"
    stored = Checkpoint(architecture=shipped(name), weight_format=weight_format("4bit"))
    formats = stored.layer_formats(0)
    in_4_bits = {path for path, each in formats.items() if each == weight_format("4bit")}
    assert in_4_bits == {"experts.gate_up_proj", "experts.down_proj"}
    assert set(formats.values()) == {weight_format("4bit"), weight_format("8bit")}
    assert stored.head_bytes == 262_144 * 2816 * 8.5 / 8
    assert stored.entry_bytes == 3 * 2816 * 2112 * 4.5 / 8


def test_diffusion_gemma_reads_sizes_that_its_config_omits_as_mlx_vlm_does() -> None:
    config = catalog.architecture_config("diffusiongemma-26b-a4b")
    text = cast("dict[str, object]", config["text_config"])
    kept = ("hidden_size", "intermediate_size", "moe_intermediate_size", "num_hidden_layers")
    bare = {key: text[key] for key in kept}
    assert read(config, text_config=bare).params == config["_total_params"]
    # The last layer sees everything whatever the pattern says.
    last = read(config, text_config={**bare, "num_hidden_layers": 7}).layers[-1]
    assert last.mixer == shipped("diffusiongemma-26b-a4b").layers[5].mixer


@pytest.mark.parametrize(
    ("config", "changes", "line"),
    [
        (LLADA, {"d_model": None}, "d_model: is missing; give a whole number of at least 1"),
        (LLADA, {"weight_tying": None}, "weight_tying: is missing; give true or false"),
        (
            LLADA,
            {"n_heads": 3},
            "n_heads = 3: does not divide the width of 256; give a divisor of d_model",
        ),
        (
            LLADA,
            {"n_kv_heads": 3},
            "n_kv_heads = 3: does not divide the 4 heads; give a divisor of n_heads",
        ),
        (
            LLADA2,
            {"num_experts_per_tok": None},
            "num_experts_per_tok: is missing; give a whole number of at least 1",
        ),
        (
            LLADA2,
            {"num_experts_per_tok": 9},
            "num_experts_per_tok = 9: is more than the 8 experts; give at most num_experts",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    config: dict[str, object], changes: dict[str, object], line: str
) -> None:
    assert refusal(config, **changes) == f"toy.json: {line}"
