"""From a Hugging Face config.json to an architecture, one module per family.

The keys are those of transformers. Where mlx-lm reads a config in another way (ties, windows),
mlx-lm is right, because mlx-lm is what runs. A size is never assumed: a default stands only where
transformers' config class or mlx-lm 0.32.2 has that very default, and a comment says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from model.architecture import Architecture, Matrix
from model.config import gemma, llama, mixture, olmo, phi, qwen
from model.config.blocks import Network
from model.config.fields import Fields

FAMILIES: dict[str, Callable[[Fields], Network]] = {
    "gemma": gemma.gemma,
    "gemma2": gemma.gemma2,
    "gemma3": gemma.gemma3,
    "gemma3_text": gemma.gemma3_text,
    "gpt_oss": mixture.gpt_oss,
    "llama": llama.llama,
    "ministral3": llama.ministral3,
    "mistral": llama.llama,
    "mistral3": llama.mistral3,
    "mixtral": mixture.mixtral,
    "olmo2": olmo.olmo2,
    "olmo3": olmo.olmo3,
    "phi3": phi.phi3,
    "phimoe": mixture.phimoe,
    "qwen2": qwen.qwen2,
    "qwen2_moe": mixture.qwen2_moe,
    "qwen3": qwen.qwen3,
    "qwen3_moe": mixture.qwen3_moe,
    "qwen3_vl": qwen.qwen3_vl,
    "qwen3_vl_moe": mixture.qwen3_vl_moe,
    "smollm3": llama.llama,
}
"""What reads each `model_type`."""


def read_config(config: Mapping[str, object], *, name: str, source: str) -> Architecture:
    """The architecture that a config.json describes.

    `source` says where the config came from and opens every error line.

    Raises:
        InputError: an unknown `model_type`, or a field that is missing or cannot be.
    """
    fields = Fields(values=config, where=source)
    model_type = fields.text("model_type")
    if model_type not in FAMILIES:
        near = get_close_matches(model_type.lower(), FAMILIES, n=3, cutoff=0.5)
        right = (
            f"the nearest known are {', '.join(near)}" if near else f"known: {', '.join(FAMILIES)}"
        )
        raise fields.refusal("model_type", "is not a known architecture", right)
    network = FAMILIES[model_type](fields)
    hidden, vocabulary = network.fields.size("hidden_size"), network.fields.size("vocab_size")
    return Architecture(
        name=name,
        model_type=model_type,
        hidden_size=hidden,
        vocab_size=vocabulary,
        layers=network.layers,
        head=Matrix(
            name="model.embed_tokens" if network.tied else "lm_head",
            columns=vocabulary,
            depth=hidden,
            bias=network.head_bias,
        ),
        tied=network.tied,
        final_vector_params=network.norm_vectors * hidden,
        context_limit=network.fields.optional_size("max_position_embeddings"),
        source=source,
        module_prefix=network.module_prefix,
    )
