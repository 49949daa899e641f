"""Reading a config.json: what each family makes of it, and one clear line for a bad one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import catalog
from model.errors import InputError
from model.network.architecture import Architecture
from model.network.config import FAMILIES, read_config
from model.network.config.quantization import stated_checkpoint
from model.network.layer import Layer
from model.network.mixer import Attention, MixerKind

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
EXPERTS: dict[str, object] = {
    "num_experts": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 128,
}
EVERYTHING = {**LLAMA, **EXPERTS, "sliding_window": 64, "num_kv_shared_layers": 0}
VISION = ("gemma3", "mistral3", "qwen3_vl", "qwen3_vl_moe")
ROUTERS_IN_8_BITS = {
    *("diffusion_gemma", "gemma4", "gpt_oss", "lfm2_moe", "minimax_m2"),
    *("qwen3_5_moe", "qwen3_moe", "qwen3_next", "qwen3_vl_moe", "qwen4_exp"),
}
HYPER_CONNECTED = ("deepseek_v4", "glm5_next", "qwen4_exp")


def read(config: Mapping[str, object], **changes: object) -> Architecture:
    return read_config({**config, **changes}, name="toy", source="toy.json")


def of_family(model_type: str, /, **changes: object) -> Architecture:
    """A toy of any family."""
    if model_type not in VISION:
        return read({**EVERYTHING, "model_type": model_type}, **changes)
    inside = {**EVERYTHING, "model_type": "mistral", **changes}
    return read({}, model_type=model_type, text_config=inside, vocab_size=1000)


def refusal(config: Mapping[str, object], **changes: object) -> str:
    with pytest.raises(InputError) as refused:
        read(config, **changes)
    return str(refused.value)


def shipped_configs() -> dict[str, Mapping[str, object]]:
    """One config of each model type that the catalog holds."""
    configs = [catalog.architecture_config(name) for name in catalog.architecture_names()]
    return {str(config["model_type"]): config for config in configs}


SHIPPED = shipped_configs()


def example(model_type: str) -> Architecture:
    """A shipped network of a family, or a toy where none is shipped."""
    if model_type not in SHIPPED:
        return of_family(model_type)
    return read_config(SHIPPED[model_type], name=model_type, source="shipped.json")


def heads(layer: Layer) -> Attention:
    assert isinstance(layer.mixer, Attention)
    return layer.mixer


def group_names(layer: Layer) -> list[str]:
    return [siblings.name for siblings in layer.siblings]


@pytest.mark.parametrize("model_type", FAMILIES)
def test_every_mixer_reads_the_hidden_state_and_writes_it(model_type: str) -> None:
    architecture = example(model_type)
    for layer, _ in architecture.layer_kinds:
        if layer.mixer is None:
            assert layer.has_mlp
            continue
        first, last = layer.mixer_siblings[0], layer.mixer_siblings[-1]
        # Hyper-connections read several streams, each as wide as the hidden state.
        streams = 4 if model_type in HYPER_CONNECTED else 1
        depths = {matrix.depth for matrix in first.matrices}
        assert depths <= {architecture.hidden_size, streams * architecture.hidden_size}
        assert last.columns == architecture.hidden_size


@pytest.mark.parametrize("model_type", FAMILIES)
def test_every_family_ends_in_a_matrix_as_wide_as_its_vocabulary(model_type: str) -> None:
    architecture = example(model_type)
    assert (architecture.head.name == architecture.embedding.name) == architecture.tied
    assert architecture.head.columns == architecture.vocab_size
    assert architecture.head.depth == architecture.hidden_size


@pytest.mark.parametrize("model_type", VISION)
def test_inside_a_vision_model_paths_have_a_prefix(model_type: str) -> None:
    architecture = of_family(model_type)
    first = architecture.layers[0].matrices[0]
    path = architecture.layer_path(0, first)
    assert path == "language_model.model.layers.0.self_attn.q_proj"
    assert architecture.outer_path(architecture.head).startswith("language_model.")


def test_a_stated_head_dim_is_not_a_share_of_the_hidden_size() -> None:
    attention = heads(read(LLAMA, head_dim=64).layers[0])
    assert attention.head_dim == 64
    assert heads(read(LLAMA).layers[0]).head_dim == 256 // 8
    assert heads(read(LLAMA, head_dim=None).layers[0]).head_dim == 256 // 8


def test_absent_kv_heads_are_one_for_each_query_head() -> None:
    assert heads(read(LLAMA, num_key_value_heads=None).layers[0]).kv_heads == 8


def test_a_window_counts_only_in_layers_that_slide() -> None:
    assert heads(read(LLAMA, sliding_window=64).layers[0]).window is None
    types = ["sliding_attention", "full_attention"] * 2
    windows = [
        heads(layer).window for layer in read(LLAMA, sliding_window=64, layer_types=types).layers
    ]
    assert windows == [64, None, 64, None]


@pytest.mark.parametrize(
    ("model_type", "full_layers"),
    [("gemma3_text", [5, 11]), ("olmo3", [3, 7, 11]), ("gpt_oss", [1, 3, 5, 7, 9, 11])],
)
def test_which_layers_slide_when_the_config_does_not_say(
    model_type: str, full_layers: list[int]
) -> None:
    layers = of_family(model_type, num_hidden_layers=12).layers
    full = [i for i, layer in enumerate(layers) if heads(layer).kind is MixerKind.FULL]
    assert full == full_layers


def test_biases_come_where_they_are_asked_for() -> None:
    biased = read(LLAMA, attention_bias=True, mlp_bias=True).layers[0]
    assert all(matrix.bias for matrix in biased.matrices)
    assert not any(matrix.bias for matrix in read(LLAMA).layers[0].matrices)
    qwen = read(LLAMA, model_type="qwen2").layers[0]
    assert {m.name for m in qwen.matrices if m.bias} == {
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
    }


def test_phi_stores_in_one_matrix_what_llama_has_in_several() -> None:
    phi, llama = of_family("phi3"), of_family("llama")
    assert phi.params == llama.params
    assert [len(siblings.matrices) for siblings in phi.layers[0].siblings] == [1, 1, 1, 1]


def test_a_shared_expert_is_dense_and_its_gate_reads_the_same_input() -> None:
    layer = of_family("qwen2_moe").layers[0]
    assert group_names(layer) == ["qkv", "out", "shared_gate_up", "shared_down"]
    assert [matrix.columns for matrix in layer.siblings[2].matrices] == [128, 128, 1]


def test_only_some_routers_are_kept_in_8_bits() -> None:
    shipped = [catalog.architecture_config(name) for name in catalog.architecture_names()]
    protected = {
        str(config["model_type"])
        for config in shipped
        for layer, _ in read(config).layer_kinds
        if layer.experts and layer.experts.router.protected
    }
    assert protected == ROUTERS_IN_8_BITS


def test_a_mixture_may_have_dense_layers() -> None:
    every_other = of_family("qwen3_moe", decoder_sparse_step=2, mlp_only_layers=[3])
    sparse = [layer.experts is not None for layer in every_other.layers]
    assert sparse == [False, True, False, False]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"hidden_size": None},
            "toy.json: hidden_size: is missing; give a whole number of at least 1",
        ),
        (
            {"hidden_size": "4096"},
            "toy.json: hidden_size = '4096': is text; give a whole number of at least 1",
        ),
        (
            {"num_hidden_layers": 0},
            "toy.json: num_hidden_layers = 0: is below 1; give a whole number of at least 1",
        ),
        (
            {"num_hidden_layers": 10**9},
            "toy.json: num_hidden_layers = 1000000000: is above 4096; "
            "give a whole number of at most 4096",
        ),
        (
            {"intermediate_size": -512},
            "toy.json: intermediate_size = -512: is below 1; give a whole number of at least 1",
        ),
        (
            {"vocab_size": 1000.5},
            "toy.json: vocab_size = 1000.5: is not a whole number; "
            "give a whole number of at least 1",
        ),
        (
            {"vocab_size": True},
            "toy.json: vocab_size = True: is true or false; give a whole number of at least 1",
        ),
        (
            {"num_key_value_heads": 3},
            "toy.json: num_key_value_heads = 3: does not divide the 8 attention heads; "
            "give a divisor of num_attention_heads",
        ),
        (
            {"num_attention_heads": 6},
            "toy.json: num_attention_heads = 6: does not divide the hidden size 256; "
            "give a divisor of hidden_size, or state head_dim",
        ),
        (
            {"attention_bias": "no"},
            "toy.json: attention_bias = 'no': is text; give true or false",
        ),
        (
            {"layer_types": ["full_attention"]},
            "toy.json: layer_types = ['full_attention']: has 1 entries; "
            "name one type for each of the 4 layers",
        ),
        (
            {"layer_types": ["chunked"] * 4},
            "toy.json: layer_types = ['chunked', 'chunked', 'chunked', 'chunked']: "
            "holds 'chunked'; this family has full_attention and sliding_attention",
        ),
        (
            {"layer_types": ["sliding_attention"] * 4},
            "toy.json: sliding_window: is missing; give a whole number of at least 1",
        ),
        (
            {"model_type": None},
            "toy.json: model_type: is missing; give a name in quotes",
        ),
        (
            {"model_type": "qwen3_omni_moe"},
            "toy.json: model_type = 'qwen3_omni_moe': is not a known architecture; "
            "the nearest known are qwen3_5_moe, qwen3_moe, qwen3_vl_moe",
        ),
        (
            {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 5},
            "toy.json: num_experts_per_tok = 5: is more than the 4 experts; "
            "give at most num_local_experts",
        ),
        (
            {"model_type": "gemma3"},
            "toy.json: text_config: is missing; give an object in braces",
        ),
        (
            {"model_type": "gemma3", "text_config": {"hidden_size": []}},
            "toy.json: text_config.hidden_size = []: is a list; give a whole number of at least 1",
        ),
        (
            {"model_type": "mistral3", "text_config": {"model_type": "mistral4"}},
            "toy.json: text_config.model_type = 'mistral4': is not a known language model; "
            "inside mistral3, ministral3, mistral, llama are known",
        ),
        (
            {"model_type": "qwen3_moe", **EXPERTS, "mlp_only_layers": ["first"]},
            "toy.json: mlp_only_layers = ['first']: holds more than whole numbers; "
            "give the numbers of the layers without experts",
        ),
    ],
)
def test_a_bad_config_is_refused_by_the_path_of_the_field(
    changes: dict[str, object], line: str
) -> None:
    assert refusal(LLAMA, **changes) == line


def test_an_architecture_like_no_other_is_told_all_that_are_known() -> None:
    line = refusal(LLAMA, model_type="rwkv7")
    assert line.startswith("toy.json: model_type = 'rwkv7': is not a known architecture; known: ")
    assert all(model_type in line for model_type in FAMILIES)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def outcome(reading: Callable[[], object]) -> str:
    """The line of a refusal, or nothing; any other error passes."""
    try:
        reading()
    except InputError as error:
        return str(error)
    return ""


@given(data=st.data(), model_type=st.sampled_from(sorted(SHIPPED)))
def test_any_value_in_any_field_is_read_or_refused_in_one_line(
    data: st.DataObject, model_type: str
) -> None:
    config = dict(SHIPPED[model_type])
    inside = config.get("text_config")
    fields = dict(cast("Mapping[str, object]", inside)) if isinstance(inside, dict) else config
    optional = ["layer_types", "head_dim", "mlp_only_layers", "attention_bias", "sliding_window"]
    key = data.draw(st.sampled_from([*fields, *optional]))
    fields[key] = data.draw(anything)
    changed = {**config, "text_config": fields} if isinstance(inside, dict) else fields
    line = outcome(lambda: read(changed))
    assert "\n" not in line


@given(data=st.data(), section=st.sampled_from(["quantization", "quantization_config"]))
def test_any_quantization_is_read_or_refused_in_one_line(data: st.DataObject, section: str) -> None:
    keys = ["group_size", "bits", "mode", "quant_method", "modules_to_not_convert", "lm_head"]
    stated = {key: data.draw(anything) for key in data.draw(st.sets(st.sampled_from(keys)))}
    architecture = read(LLAMA)
    sensible = {"group_size": 64, "bits": 4} if data.draw(st.booleans()) else {}
    config = {**LLAMA, section: {**sensible, **stated}}
    assert "\n" not in outcome(lambda: stated_checkpoint(config, architecture))
