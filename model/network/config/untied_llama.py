"""Llamas that are untied unless the config ties them: K2 Horizon, Nanbeige, the first OLMo."""

from __future__ import annotations

from dataclasses import replace

from model.network.config.blocks import Network, filled
from model.network.config.fields import Fields
from model.network.config.llama import llama

UNUSED = {
    "enable_double_loop_split": "splits a loop in two",
    "loop_share_kv": "shares the keys and values of loops",
    "enable_depth_attention": "attends to other layers",
}
"""What Nanbeige's reference can do and mlx-lm 0.32.2 refuses to run."""


def k2_horizon(fields: Fields) -> Network:
    """K2 Horizon, which mlx-vlm 0.7.10 runs: Llama with heads of 128 unless stated."""
    found = _untied(fields, {"head_dim": 128}, mlp_bias=False)
    return replace(found, module_prefix="language_model.")


def nanbeige(fields: Fields) -> Network:
    """Nanbeige: the stack of layers runs several times, each time with caches of its own.

    Raises:
        InputError: the config asks for what mlx-lm does not run.
    """
    for key, does in UNUSED.items():
        if fields.flag(key, False):
            raise fields.refusal(key, f"{does}, which mlx-lm does not run", "give false")
    stated = fields.size("num_loops", 1)
    # A checkpoint trained with a loss after every loop has a weight for each but the last.
    loops = len(fields.items("loop_loss_weights")) + 1
    return replace(_untied(fields, {}), loops=loops if loops > 1 else stated)


def olmo(fields: Fields) -> Network:
    """The first OLMo as transformers stores it; its norms have no parameters.

    mlx-lm's module reads the original release instead: the same numbers under other keys, with
    query, key and value in one matrix.
    """
    found = _untied(fields, {}, mlp_bias=False)
    layers = tuple(replace(layer, vector_params=0) for layer in found.layers)
    return replace(found, layers=layers, norm_vectors=0)


def _untied(fields: Fields, defaults: dict[str, object], **fixed: object) -> Network:
    """A Llama of these fields; none of the three slides in any layer."""
    whole = filled(fields, {"tie_word_embeddings": False, **defaults})
    return llama(replace(whole, values={**whole.values, **fixed, "layer_types": None}))
