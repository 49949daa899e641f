"""Small networks of random weights for the loops."""

from __future__ import annotations

from calibrate.networks import Network, random_network

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": 512,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}
QWEN3_MOE: dict[str, object] = {
    "model_type": "qwen3_moe",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
    "vocab_size": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
}
GEMMA2: dict[str, object] = {
    "model_type": "gemma2",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "head_dim": 16,
    "rms_norm_eps": 1e-6,
    "vocab_size": 512,
    "num_key_value_heads": 2,
}
PROMPT = (7, 11, 13, 17, 7, 11, 13, 5)


def network(config: dict[str, object], form: str = "fp32", seed: int = 0) -> Network:
    return random_network(config, form, seed, name=str(config["model_type"]))
