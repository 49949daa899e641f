"""Every matrix of every shipped architecture has the path and the bytes it has in mlx-lm.

mlx-lm builds its own model from the same config, casts and quantizes it; all of it is lazy, so no
weight is ever computed and 405B takes a tenth of a second. Compared are the bytes of each module,
the totals, and the kind and the bytes of what each layer remembers after a lazy pass.
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
from mlx_lm.models.cache import (
    ArraysCache,
    ChunkedKVCache,
    RotatingKVCache,
    make_prompt_cache,
)
from mlx_lm.utils import _get_classes, quantize_model

from model import catalog
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint
from model.network.config import FAMILIES, read_config
from model.network.config.quantization import stated_checkpoint
from model.network.matrix import Matrix
from model.network.mixer import Attention, MixerKind
from model.network.weight_format import WeightFormat, weight_format


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


def latent(model_type: str, **fields: object) -> dict[str, object]:
    """A tiny mixture with latent attention: one dense layer, three sparse ones."""
    widths = {"kv_lora_rank": 64, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "v_head_dim": 96}
    experts = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
    first = {"q_lora_rank": None, "first_k_dense_replace": 1, "num_key_value_heads": 4}
    return llama(model_type, **{**widths, **experts, **first, **fields})


def delta(model_type: str, **fields: object) -> dict[str, object]:
    """A tiny Qwen with three gated delta nets and one attention."""
    heads = {"linear_num_value_heads": 4, "linear_num_key_heads": 2}
    widths = {"linear_key_head_dim": 32, "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4}
    return llama(model_type, **{**heads, **widths, "head_dim": 64, **fields})


def nemotron_h(**fields: object) -> dict[str, object]:
    """A tiny Nemotron with a layer of each kind."""
    mamba = {"mamba_num_heads": 8, "mamba_head_dim": 32, "ssm_state_size": 64, "n_groups": 2}
    biases = {"attention_bias": False, "mlp_bias": False, "mamba_proj_bias": False}
    flags = {"use_bias": False, "use_conv_bias": True, "conv_kernel": 4}
    norms = {"layer_norm_epsilon": 1e-5, "norm_topk_prob": True, "routed_scaling_factor": 1.0}
    experts = {"n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
    groups = {"n_group": 1, "topk_group": 1, "hybrid_override_pattern": "M*-E"}
    return llama(
        "nemotron_h", **{**mamba, **biases, **flags, **norms, **experts, **groups, **fields}
    )


def bailing(**fields: object) -> dict[str, object]:
    """A tiny Ling 3: one group of three layers, then one layer left over."""
    return latent(
        "bailing_hybrid",
        **{
            **{"architectures": ["BailingMoeV3ForCausalLM"], "layer_group_size": 3},
            **{"moe_shared_expert_intermediate_size": 64, "head_dim": 32},
            **{"num_experts": 8, "n_group": 2, "topk_group": 1, **fields},
        },
    )


def lfm2(model_type: str, **fields: object) -> dict[str, object]:
    """A tiny LFM with two convolutions and two attentions."""
    types = {"layer_types": ["conv", "full_attention", "conv", "full_attention"]}
    convolution = {"norm_eps": 1e-5, "conv_bias": False, "conv_L_cache": 3}
    block = {"block_dim": 128, "block_multiple_of": 64, "block_ffn_dim_multiplier": 1.0}
    block["block_auto_adjust_ff_dim"] = False
    return llama(model_type, **{**types, **convolution, **block, **fields})


def gemma4(**fields: object) -> dict[str, object]:
    """A tiny Gemma 4 that shares no cache and has no inputs of its own for each layer."""
    plain = {"num_kv_shared_layers": 0, "hidden_size_per_layer_input": 0, "sliding_window": 512}
    return llama("gemma4_text", **{**plain, "layer_types": GEMMA4_TYPES, **fields})


def glm4_moe(**fields: object) -> dict[str, object]:
    """A tiny GLM 4.5 with what mlx-lm insists on."""
    routing = {"norm_topk_prob": True, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0}
    experts = {"n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
    first = {"first_k_dense_replace": 1, "n_shared_experts": 1, "head_dim": 64}
    rope = {"rope_scaling": None, "partial_rotary_factor": 0.5, "attention_bias": False}
    flags = {"use_qk_norm": False, "tie_word_embeddings": False}
    return llama("glm4_moe", **{**routing, **experts, **first, **rope, **flags, **fields})


GEMMA4_TYPES = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
MINIMAX = {
    **{"num_local_experts": 6, "num_experts_per_tok": 2},
    **{"shared_intermediate_size": 0, "rotary_dim": 32},
}
LLAMA4 = {
    **{"num_local_experts": 6, "num_experts_per_tok": 1, "intermediate_size_mlp": 384},
    **{"attention_bias": True, "attention_chunk_size": 64, "interleave_moe_layer_step": 2},
    **{"use_qk_norm": True, "rope_scaling": None, "head_dim": 64},
}
MIXED = ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"]
ROPE = {"rope_type": "default", "rope_theta": 1e6}
YARN = {"rope_type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}
SHARED = {"shared_expert_intermediate_size": 192}
SPARSE = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
LFM2_MOE = {**SPARSE, "norm_topk_prob": True, "num_dense_layers": 1}
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
    "deepseek_v2 low-rank queries": latent(
        "deepseek_v2", rope_scaling=YARN, q_lora_rank=96, n_shared_experts=2, attention_bias=True
    ),
    "deepseek_v2 every other": latent("deepseek_v2", rope_scaling=YARN, moe_layer_freq=2),
    "deepseek_v3 biases": latent("deepseek_v3", q_lora_rank=64, attention_bias=True),
    "deepseek_v3 odd keys": latent("deepseek_v3", qk_nope_head_dim=48, n_shared_experts=1),
    "deepseek_v3 dense": latent("deepseek_v3", n_routed_experts=None),
    "glm4_moe_lite": latent("glm4_moe_lite", n_shared_experts=1),
    "qwen3_next": delta(
        "qwen3_next",
        **SPARSE,
        **SHARED,
        decoder_sparse_step=2,
        mlp_only_layers=[1],
        partial_rotary_factor=0.25,
        tie_word_embeddings=True,
        attention_bias=True,
    ),
    "qwen3_5 alone": delta("qwen3_5", head_dim=None, tie_word_embeddings=True),
    "qwen3_5 interval": {
        "model_type": "qwen3_5",
        "tie_word_embeddings": True,  # outside, where mlx-lm does not look
        "text_config": delta("qwen3_5_text", full_attention_interval=2),
    },
    "qwen3_5_moe": delta("qwen3_5_moe", **SPARSE, **SHARED),
    "lfm2 adjusted": lfm2(
        "lfm2", block_auto_adjust_ff_dim=True, block_ffn_dim_multiplier=1.3, conv_bias=True
    ),
    "lfm2 numbers": lfm2("lfm2", layer_types=None, full_attn_idxs=[2], num_key_value_heads=None),
    "lfm2 no multiplier": lfm2(
        "lfm2", block_auto_adjust_ff_dim=True, block_ffn_dim_multiplier=None, block_ff_dim=500
    ),
    "gemma4 shared and gated in": {
        "model_type": "gemma4",
        "text_config": gemma4(num_kv_shared_layers=2, hidden_size_per_layer_input=32),
    },
    "gemma4 nothing shared": {
        "model_type": "gemma4_unified",
        "vocab_size": 320,
        "text_config": gemma4(attention_k_eq_v=True, num_global_key_value_heads=1),
    },
    "gemma4_text mixture": gemma4(
        **{"enable_moe_block": True, "num_experts": 6, "top_k_experts": 2},
        moe_intermediate_size=64,
        attention_k_eq_v=True,
        sliding_window_pattern=2,
        tie_word_embeddings=False,
    ),
    "gemma4_text narrow sharers": gemma4(num_kv_shared_layers=2, use_double_wide_mlp=False),
    "glm4_moe normed": glm4_moe(use_qk_norm=True, attention_bias=True, n_shared_experts=2),
    "glm4_moe all sparse": glm4_moe(first_k_dense_replace=0),
    "minimax_m2 plain": llama("minimax_m2", **MINIMAX, use_qk_norm=False, head_dim=64),
    "llama4 every other": {"model_type": "llama4", "text_config": llama("llama4_text", **LLAMA4)},
    "muse_glimmer flat": llama("muse_glimmer", num_key_value_heads=2, tie_word_embeddings=True),
    "muse_glimmer nested": {
        "model_type": "muse_glimmer",
        "text_config": llama("muse_glimmer_text", layer_types=MIXED, head_dim=64),
    },
    "nanbeige once": llama("nanbeige", attention_bias=True, mlp_bias=True),
    "nanbeige losses": llama("nanbeige", loop_loss_weights=[0.3, 0.3], tie_word_embeddings=True),
    "gpt2": {
        **{"model_type": "gpt2", "n_embd": 128, "n_head": 4, "n_layer": 3, "n_ctx": 96},
        **{"n_positions": 96, "layer_norm_epsilon": 1e-5, "vocab_size": 192},
    },
    "nemotron_h": nemotron_h(moe_shared_expert_intermediate_size=192, n_shared_experts=1),
    "nemotron_h latent and biases": nemotron_h(
        **{"attention_bias": True, "mlp_bias": True, "mamba_proj_bias": True},
        **{"moe_latent_size": 64, "n_shared_experts": 1, "use_conv_bias": False},
    ),
    "nemotron_h words": nemotron_h(
        hybrid_override_pattern=None, layers_block_type=["mamba", "attention", "mlp", "conv"]
    ),
    "bailing_hybrid": bailing(),
    "bailing_hybrid low-rank queries": bailing(
        **{"q_lora_rank": 64, "num_shared_experts": 2, "first_k_dense_replace": 0},
        attention_bias=True,  # which mlx-lm does not read here
        tie_word_embeddings=True,
    ),
    "lfm2_moe": lfm2("lfm2_moe", **LFM2_MOE, use_expert_bias=True),
    "lfm2_moe all sparse": lfm2(
        "lfm2_moe", **{**LFM2_MOE, "num_dense_layers": 0}, use_expert_bias=False
    ),
}
NOT_RUN_BY_MLX_LM = frozenset(
    {
        *("k2_horizon", "llada2_moe", "diffusion_gemma"),  # mlx-vlm runs these
        *("deepseek_v4", "glm5_next", "qwen4_exp"),  # mlx-vlm does
        *("Dream", "hy_v3", "llada"),  # nothing on MLX does
        "olmo",  # its module reads other keys, and only where `hf_olmo` is installed
    }
)
"""Model types whose counts stand on their own: mlx-lm 0.32.2 has no such network."""
RUN_BY_MLX_LM = [
    name
    for name in catalog.architecture_names()
    if catalog.architecture_config(name)["model_type"] not in NOT_RUN_BY_MLX_LM
]
TOKENS = 3
"""Of the pass after which caches are compared: fewer than any window."""


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
    """Bytes of each module of mlx-lm's model that holds a matrix, and of all the rest.

    The kernel of a depthwise convolution (channels, taps, 1) is one vector for each tap.
    """
    sizes: Counter[str] = Counter()
    matrices = {
        path.removesuffix(".weight")
        for path, each in arrays(model).items()
        if each.ndim > 1 and each.shape[-1] > 1
    }
    for path, array in arrays(model).items():
        module = path.rpartition(".")[0]
        sizes[module if module in matrices else "vectors"] += array.nbytes
    return sizes


def matrices_of(architecture: Architecture) -> Iterator[tuple[str, Matrix]]:
    for index, layer in enumerate(architecture.layers):
        for matrix in layer.matrices:
            yield architecture.layer_path(index, matrix), matrix
    tables = {architecture.embedding, architecture.head, *architecture.lookups}
    for matrix in (*tables, *architecture.entry_matrices):
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
@pytest.mark.parametrize("name", RUN_BY_MLX_LM)
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


def remembered(config: dict[str, Any]) -> list[Any]:
    """mlx-lm's caches after a lazy pass of three tokens: every array has its shape and dtype."""
    model = mlx_model(config, mx.bfloat16)
    caches = make_prompt_cache(model)
    model(mx.zeros((1, TOKENS), dtype=mx.int32), cache=caches)
    return caches


def held_bytes(cache: Any) -> int:
    """Bytes of a cache of mlx-lm, without the room for tokens to come that it has allocated."""
    if isinstance(cache, ArraysCache):
        return sum(array.nbytes for array in cast("list[mx.array]", cache.cache))
    return sum(TOKENS * array.nbytes // array.shape[-2] for array in (cache.keys, cache.values))


def window_of(cache: Any) -> int | None:
    if isinstance(cache, RotatingKVCache):
        return cache.max_size
    return cache.chunk_size if isinstance(cache, ChunkedKVCache) else None


@pytest.mark.parametrize("which", [*RUN_BY_MLX_LM, *TOYS])
def test_each_layer_remembers_as_mlx_lms_cache_does(which: str) -> None:
    config, architecture = (
        (TOYS[which], read_config(TOYS[which], name=which, source=which))
        if which in TOYS
        else read(which)
    )
    theirs = remembered(config)
    once = [layer.mixer for layer in architecture.layers if layer.mixer is not None]
    mixers = architecture.loops * [mixer for mixer in once if mixer.kept_bytes(TOKENS, 2)]
    kept = [mixer.kept_bytes(TOKENS, 2) for mixer in mixers]
    assert kept == [held_bytes(cache) for cache in theirs]
    windows = [mixer.window if isinstance(mixer, Attention) else None for mixer in mixers]
    assert windows == [window_of(cache) for cache in theirs]
    assert [mixer.kind is MixerKind.RECURRENT for mixer in mixers] == [
        isinstance(cache, ArraysCache) for cache in theirs
    ]
    assert architecture.kv_bytes(TOKENS, 2) == sum(kept)


def test_every_model_type_that_mlx_lm_runs_is_compared() -> None:
    shipped = [catalog.architecture_config(name) for name in RUN_BY_MLX_LM]
    compared = {str(config["model_type"]) for config in [*shipped, *TOYS.values()]}
    assert compared == set(FAMILIES) - NOT_RUN_BY_MLX_LM


@pytest.mark.parametrize("model_type", sorted(NOT_RUN_BY_MLX_LM))
def test_what_is_not_compared_cannot_be(model_type: str) -> None:
    # The module of `olmo` ends the process where `hf_olmo` is not installed.
    with pytest.raises((ValueError, SystemExit), match=r"not supported|^1$"):
        _get_classes({"model_type": model_type})
