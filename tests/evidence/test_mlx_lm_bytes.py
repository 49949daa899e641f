"""Every matrix of every shipped architecture has the path and the bytes it has in mlx-lm.

mlx-lm builds its own model from the same config, casts and quantizes it; all of it is lazy, so no
weight is ever computed and 405B takes a tenth of a second. Compared are the bytes of each module,
the totals, and the kind of cache that each layer gets.
"""

# mlx-lm has no types, and no public way to a model's class.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false, reportMissingTypeStubs=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import contextlib
import copy
import io
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models.cache import RotatingKVCache, make_prompt_cache
from mlx_lm.utils import _get_classes, quantize_model

from model import catalog
from model.architecture import Architecture, AttentionKind, Matrix
from model.checkpoint import Checkpoint
from model.config import FAMILIES, read_config
from model.config.quantization import stated_checkpoint
from model.weight_format import WeightFormat, weight_format


def llama(model_type: str = "llama", **fields: object) -> dict[str, object]:
    """A tiny config with what every family states."""
    return {
        "model_type": model_type,
        "hidden_size": 128,
        "num_hidden_layers": 4,
        "intermediate_size": 320,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 4096,
        "vocab_size": 192,
        **fields,
    }


def qwen_moe(model_type: str, **fields: object) -> dict[str, object]:
    """A tiny mixture with what mlx-lm insists on for Qwen."""
    experts = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
    routing = {"norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []}
    return llama(model_type, **{**experts, **routing, "tie_word_embeddings": False, **fields})


MIXED = ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"]
ROPE = {"rope_type": "default", "rope_theta": 1e6}
SCALED = {**ROPE, "llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 4096}
GEMMA3 = {"hidden_size": 512, "num_hidden_layers": 7, "intermediate_size": 640}

TOYS = {
    "nothing stated": llama(),
    "biases": llama(attention_bias=True, mlp_bias=True, tie_word_embeddings=False),
    "wide heads": llama(head_dim=64, num_key_value_heads=None),
    "windows": llama(layer_types=MIXED, sliding_window=512),
    "odd depth": llama(intermediate_size=352),
    "ministral3": llama(
        "ministral3", layer_types=MIXED, sliding_window=512, rope_parameters=SCALED
    ),
    "mistral3 untied": {"model_type": "mistral3", "text_config": llama("mistral")},
    "qwen2 untied": llama("qwen2", tie_word_embeddings=False),
    "gemma": llama("gemma", head_dim=64),
    "gemma3 pattern": llama("gemma3_text", head_dim=64, sliding_window_pattern=3),
    "gemma3 defaults": {
        "model_type": "gemma3",
        "text_config": {"model_type": "gemma3_text", **GEMMA3},
    },
    "phi3 tied": llama("phi3", tie_word_embeddings=True),
    "olmo2 biases": llama("olmo2", attention_bias=True, mlp_bias=True),
    "olmo3 pattern": llama("olmo3", sliding_window=256),
    "mixtral tied": llama(
        "mixtral", num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=True
    ),
    "qwen2_moe": qwen_moe("qwen2_moe", shared_expert_intermediate_size=192),
    "qwen3_moe half sparse": qwen_moe("qwen3_moe", head_dim=64, decoder_sparse_step=2),
    "qwen3_moe first dense": qwen_moe("qwen3_moe", head_dim=64, mlp_only_layers=[0]),
    "gpt_oss alternating": llama(
        "gpt_oss", head_dim=64, num_local_experts=6, num_experts_per_tok=2, sliding_window=128
    ),
}


def mlx_model(config: dict[str, Any], dtype: Any) -> Any:
    """mlx-lm's model of a config, in a dtype, without a head where its weights would have none."""
    model_class, arguments_class = _get_classes(config)
    model = model_class(arguments_class.from_dict(copy.deepcopy(config)))
    text = getattr(model, "language_model", model)
    if text.model_type == "gemma3_text":
        text.sanitize({})  # drops the head, as for the releases, which hold none
    model.set_dtype(dtype)
    return model


def quantized(model: Any, config: dict[str, Any], stored_as: WeightFormat) -> dict[str, Any]:
    """Quantize as `mlx_lm.convert` does, in place; the config that it would write."""
    mode = stored_as.name if stored_as.family == "fp" else "affine"
    with contextlib.redirect_stdout(io.StringIO()):
        _, written = quantize_model(
            model, dict(config), stored_as.group_size, stored_as.bits, mode=mode
        )
    return written


def arrays(model: Any) -> dict[str, mx.array]:
    return dict(cast("list[tuple[str, mx.array]]", tree_flatten(model.parameters())))


def module_bytes(model: Any) -> Counter[str]:
    """Bytes of each module of mlx-lm's model that holds a matrix, and of all the rest."""
    sizes: Counter[str] = Counter()
    matrices = {
        path.removesuffix(".weight") for path, each in arrays(model).items() if each.ndim > 1
    }
    for path, array in arrays(model).items():
        module = path.rpartition(".")[0]
        sizes[module if module in matrices else "vectors"] += array.nbytes
    return sizes


def matrices_of(architecture: Architecture) -> Iterator[tuple[str, Matrix]]:
    for index, layer in enumerate(architecture.layers):
        for matrix in layer.matrices:
            yield architecture.layer_path(index, matrix), matrix
    for matrix in {architecture.embedding, architecture.head}:
        yield architecture.outer_path(matrix), matrix


def counted_bytes(checkpoint: Checkpoint) -> Counter[str]:
    """The same, as we count it."""
    architecture = checkpoint.architecture
    vectors = architecture.final_vector_params + sum(
        layer.vector_params for layer in architecture.layers
    )
    sizes = Counter({"vectors": vectors * checkpoint.vector_bytes})
    for path, matrix in matrices_of(architecture):
        stored_as = checkpoint.matrix_format(path, matrix)
        sizes[path] += checkpoint.matrix_bytes(matrix, stored_as)
    return sizes


def assert_same_bytes(checkpoint: Checkpoint, model: Any) -> None:
    theirs = module_bytes(model)
    assert counted_bytes(checkpoint) == theirs
    assert checkpoint.total_bytes == theirs.total()


def assert_same(config: dict[str, Any], architecture: Architecture, format_name: str) -> None:
    """Bytes, and the same bytes again from the config that mlx-lm writes."""
    stored_as = weight_format(format_name)
    checkpoint = Checkpoint(architecture=architecture, weight_format=stored_as)
    model = mlx_model(config, mx.bfloat16)
    if stored_as.family == "float":
        assert_same_bytes(checkpoint, model)
        assert architecture.params == sum(each.size for each in arrays(model).values())
        return
    written = quantized(model, config, stored_as)
    assert_same_bytes(checkpoint, model)
    stated = stated_checkpoint(written, architecture)
    assert stated is not None
    assert_same_bytes(stated, model)


def read(name: str) -> tuple[dict[str, Any], Architecture]:
    config = catalog.architecture_config(name)
    return config, read_config(config, name=name, source=str(config["_source"]))


@pytest.mark.parametrize("format_name", ["bf16", "4bit", "8bit"])
@pytest.mark.parametrize("name", catalog.architecture_names())
def test_a_shipped_model_is_mlx_lms_to_the_byte(name: str, format_name: str) -> None:
    assert_same(*read(name), format_name)


@pytest.mark.parametrize("format_name", ["mxfp4", "nvfp4", "mxfp8", "3bit-g32", "6bit-g128"])
@pytest.mark.parametrize("name", ["smollm2-135m", "gemma-3-1b", "qwen3-30b-a3b", "gpt-oss-20b"])
def test_every_kind_of_format_is_mlxs_to_the_byte(name: str, format_name: str) -> None:
    assert_same(*read(name), format_name)


@pytest.mark.parametrize("format_name", ["bf16", "4bit", "mxfp4"])
@pytest.mark.parametrize("toy", TOYS)
def test_what_no_release_states_is_read_as_mlx_lm_reads_it(toy: str, format_name: str) -> None:
    config = TOYS[toy]
    assert_same(config, read_config(config, name=toy, source=toy), format_name)


@pytest.mark.parametrize("name", ["llama-3.2-1b", "qwen3-30b-a3b"])
@pytest.mark.parametrize("format_name", ["bf16", "4bit", "mxfp4"])
def test_weights_cast_to_float32_first_have_wide_scales(name: str, format_name: str) -> None:
    config, architecture = read(name)
    stored_as = weight_format(format_name)
    model = mlx_model(config, mx.float32)
    if stored_as.family != "float":
        quantized(model, config, stored_as)
    narrow = Checkpoint(architecture=architecture, weight_format=stored_as)
    assert_same_bytes(narrow.in_float32(), model)


@pytest.mark.parametrize("which", [*catalog.architecture_names(), *TOYS])
def test_each_layer_remembers_as_mlx_lms_cache_does(which: str) -> None:
    config, architecture = (
        (TOYS[which], read_config(TOYS[which], name=which, source=which))
        if which in TOYS
        else read(which)
    )
    caches = make_prompt_cache(mlx_model(config, mx.bfloat16))
    theirs = [cache.max_size if isinstance(cache, RotatingKVCache) else None for cache in caches]
    assert [layer.attention.window for layer in architecture.layers] == theirs
    for layer in architecture.layers:
        windowed = layer.attention.kind is AttentionKind.SLIDING
        assert windowed == (layer.attention.window is not None)


def test_every_model_type_is_compared() -> None:
    shipped = [catalog.architecture_config(name) for name in catalog.architecture_names()]
    assert {str(config["model_type"]) for config in [*shipped, *TOYS.values()]} == set(FAMILIES)
