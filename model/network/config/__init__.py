"""From a Hugging Face config.json to an architecture, one module per family.

The keys are those of transformers. Where mlx-lm reads a config in another way (ties, windows),
mlx-lm is right, because mlx-lm is what runs. A size is never assumed: a default stands only where
transformers' config class or mlx-lm 0.32.2 has that very default, and a comment says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from model.network.architecture import Architecture
from model.network.config import (
    bailing,
    biased_routing,
    convolution,
    deepseek_v4,
    delta,
    diffusion_lm,
    gemma,
    gemma4,
    glm5_next,
    gpt2,
    latent,
    llama,
    llama4,
    mamba,
    mixture,
    muse,
    olmo,
    phi,
    qwen,
    qwen4_exp,
    untied_llama,
)
from model.network.config.blocks import Network
from model.network.config.fields import Fields
from model.network.matrix import Matrix

FAMILIES: dict[str, Callable[[Fields], Network]] = {
    "Dream": diffusion_lm.dream,
    "bailing_hybrid": bailing.bailing_hybrid,
    "deepseek_v2": latent.deepseek_v2,
    "deepseek_v3": latent.deepseek_v3,
    "deepseek_v4": deepseek_v4.deepseek_v4,
    "diffusion_gemma": diffusion_lm.diffusion_gemma,
    "gemma": gemma.gemma,
    "gemma2": gemma.gemma2,
    "gemma3": gemma.gemma3,
    "gemma3_text": gemma.gemma3_text,
    "gemma4": gemma4.gemma4,
    "gemma4_text": gemma4.gemma4_text,
    "gemma4_unified": gemma4.gemma4,
    "glm4_moe": biased_routing.glm4_moe,
    "glm4_moe_lite": latent.glm4_moe_lite,
    "glm5_next": glm5_next.glm5_next,
    "gpt2": gpt2.gpt2,
    "gpt_oss": mixture.gpt_oss,
    "hy_v3": biased_routing.hy_v3,
    "k2_horizon": untied_llama.k2_horizon,
    "lfm2": convolution.lfm2,
    "lfm2_moe": convolution.lfm2_moe,
    "llada": diffusion_lm.llada,
    "llada2_moe": diffusion_lm.llada2_moe,
    "llama": llama.llama,
    "llama4": llama4.llama4,
    "minimax_m2": biased_routing.minimax_m2,
    "ministral3": llama.ministral3,
    "mistral": llama.llama,
    "mistral3": llama.mistral3,
    "mixtral": mixture.mixtral,
    "muse_glimmer": muse.muse_glimmer,
    "nanbeige": untied_llama.nanbeige,
    "nemotron_h": mamba.nemotron_h,
    "olmo": untied_llama.olmo,
    "olmo2": olmo.olmo2,
    "olmo3": olmo.olmo3,
    "phi3": phi.phi3,
    "phimoe": mixture.phimoe,
    "qwen2": qwen.qwen2,
    "qwen2_moe": mixture.qwen2_moe,
    "qwen3": qwen.qwen3,
    "qwen3_5": delta.qwen3_5,
    "qwen3_5_moe": delta.qwen3_5,
    "qwen3_moe": mixture.qwen3_moe,
    "qwen3_next": delta.qwen3_next,
    "qwen3_vl": qwen.qwen3_vl,
    "qwen3_vl_moe": mixture.qwen3_vl_moe,
    "qwen4_exp": qwen4_exp.qwen4_exp,
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
            name=network.embedding_name if network.tied else network.head_name,
            columns=vocabulary,
            depth=hidden,
            bias=network.head_bias,
            protected=network.protected_table,
            quantizes=network.quantizes_tables,
        ),
        tied=network.tied,
        final_vector_params=network.norm_vectors * hidden + network.entry_vector_params,
        context_limit=network.fields.optional_size("max_position_embeddings"),
        source=source,
        module_prefix=network.module_prefix,
        entry=network.entry,
        lookups=network.lookups,
        loops=network.loops,
        layers_path=network.layers_path,
        embedding_name=network.embedding_name,
        protected_table=network.protected_table,
        quantizes_tables=network.quantizes_tables,
    )
