"""The networks that probes run: a few layers of a known family, by the settings of the probe.

What measures them and what fits the timings both need the config, so it is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Values: TypeAlias = Mapping[str, str | int]

PLAIN, NORMED, MIXTURE = "llama", "qwen3", "qwen3_moe"
"""Attention and an MLP; the same with norms of queries and keys; these and experts for the MLP."""
DIMENSIONS = (
    ("hidden_size", "hidden"),
    ("intermediate_size", "intermediate"),
    ("num_attention_heads", "query_heads"),
    ("num_key_value_heads", "kv_heads"),
    ("head_dim", "head_dim"),
    ("vocab_size", "vocab"),
    ("num_hidden_layers", "layers"),
)
"""Names of a config, and those of the settings."""


def config_of(settings: Values) -> dict[str, object]:
    """The config.json of a probe's network; its head is its embedding, which every pass reads.

    `network` is one of the three kinds (the first if left out). A mixture has `num_experts`, of
    which `top_k` serve a token and are `intermediate` wide.
    """
    kind = str(settings.get("network", PLAIN))
    config: dict[str, object] = {"model_type": kind}
    config |= {name: settings[ours] for name, ours in DIMENSIONS}
    config |= {
        "rms_norm_eps": 1e-5,
        "rope_theta": 500_000.0,
        "max_position_embeddings": 131_072,
        "tie_word_embeddings": True,
    }
    if kind == MIXTURE:
        config |= {
            "num_experts": settings["num_experts"],
            "num_experts_per_tok": settings["top_k"],
            "moe_intermediate_size": settings["intermediate"],
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "norm_topk_prob": True,
        }
    return config
