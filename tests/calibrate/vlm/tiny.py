"""Small networks and heads as mlx-vlm has them, and whether it is here."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

needs_mlx_vlm = pytest.mark.skipif(
    importlib.util.find_spec("mlx_vlm") is None, reason="mlx-vlm is not installed"
)
MASK = 255
LLADA: dict[str, Any] = {
    "model_type": "llada2_moe",
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 2,
    "moe_intermediate_size": 64,
    "rms_norm_eps": 1e-6,
    "mask_token_id": MASK,
    "pad_token_id": 254,
    "max_position_embeddings": 4096,
}
GEMMA: dict[str, Any] = {
    "model_type": "diffusion_gemma",
    "canvas_length": 16,
    "text_config": {
        "hidden_size": 64,
        "intermediate_size": 64,
        "moe_intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "head_dim": 16,
        "global_head_dim": 32,
        "layer_types": ["sliding_attention", "full_attention"],
        "vocab_size": 256,
        "num_experts": 4,
        "top_k_experts": 2,
        "sliding_window": 64,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 4096,
    },
}
_SHAPE: dict[str, Any] = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 128,
    "vocab_size": 256,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 4096,
}
QWEN: dict[str, Any] = {
    "model_type": "qwen3_5",
    "tie_word_embeddings": True,
    "text_config": {
        **_SHAPE,
        "model_type": "qwen3_5_text",
        "num_hidden_layers": 4,
        "tie_word_embeddings": True,
        "full_attention_interval": 4,
        "layer_types": [*["linear_attention"] * 3, "full_attention"],
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "mtp_num_hidden_layers": 1,
        "attn_output_gate": True,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1e7,
            "partial_rotary_factor": 0.5,
            "mrope_interleaved": True,
            "mrope_section": [3, 3, 2],
        },
    },
}
GEMMA4: dict[str, Any] = {
    "model_type": "gemma4",
    "vocab_size": 256,
    "vision_config": {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 16,
    },
    "text_config": {
        **_SHAPE,
        "model_type": "gemma4_text",
        "head_dim": 16,
        "global_head_dim": 32,
        "num_hidden_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 64,
        "num_kv_shared_layers": 0,
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 256,
        "num_global_key_value_heads": 2,
        "use_double_wide_mlp": False,
        "tie_word_embeddings": True,
    },
}
LLAMA: dict[str, Any] = {
    **_SHAPE,
    "model_type": "llama",
    "num_hidden_layers": 2,
    "tie_word_embeddings": True,
}
HEADS: dict[str, dict[str, Any]] = {
    "mtp": {
        "model_type": "qwen3_5_mtp",
        "text_config": {
            **_SHAPE,
            "model_type": "qwen3_5_text",
            "mtp_num_hidden_layers": 1,
            "attn_output_gate": True,
        },
    },
    "eagle3": {
        "model_type": "eagle3",
        "architectures": ["Eagle3DraftModel"],
        "speculators_model_type": "eagle3",
        "draft_vocab_size": 128,
        "target_hidden_size": 64,
        "eagle_aux_hidden_state_layer_ids": [1, 2, 3],
        "transformer_layer_config": {**_SHAPE, "model_type": "llama", "num_hidden_layers": 1},
    },
    "dflash": {
        **_SHAPE,
        "model_type": "qwen3",
        "architectures": ["DFlashDraftModel"],
        "num_hidden_layers": 1,
        "layer_types": ["full_attention"],
        "block_size": 8,
        "num_target_layers": 4,
        "tie_word_embeddings": True,
        "dflash_config": {"mask_token_id": 250, "target_layer_ids": [1, 2]},
    },
    "assistant": {
        "model_type": "gemma4_assistant",
        "vocab_size": 256,
        "backbone_hidden_size": 64,
        "text_config": {
            **_SHAPE,
            "model_type": "gemma4_text",
            "head_dim": 16,
            "global_head_dim": 32,
            "num_hidden_layers": 2,
            "layer_types": ["sliding_attention", "full_attention"],
            "sliding_window": 64,
            "num_kv_shared_layers": 2,
            "hidden_size_per_layer_input": 0,
        },
    },
}
TARGET_OF = {"mtp": QWEN, "eagle3": QWEN, "dflash": QWEN, "assistant": GEMMA4}


def written(folder: Path, name: str, config: dict[str, Any]) -> str:
    """A config in a file of its own."""
    file = folder / f"{name}.json"
    file.write_text(json.dumps(config))
    return str(file)
