"""How the target is held beyond its weight format: its cache, and what its experts share."""

from __future__ import annotations

import argparse
from dataclasses import replace

from model.commands import options as shared
from model.errors import InputError
from model.network.checkpoint import Checkpoint
from model.network.mixer import MixerKind
from model.network.weight_format import weight_format

CACHE_FORMATS = ("8bit", "4bit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--kv-format` and `--shared-experts`."""
    parser.add_argument(
        "--kv-format",
        metavar="F",
        help=f"quantize the cache: {' or '.join(CACHE_FORMATS)} (default: 16 bits)",
    )
    parser.add_argument(
        "--shared-experts",
        metavar="SHARE",
        help="share of a token's experts that its neighbours use too (default: chance)",
    )


def check_cache(kv_format: str, target: Checkpoint) -> None:
    """Refuse to quantize caches that mlx-lm 0.32.2 cannot: windows raise, latents do not fit.

    Raises:
        InputError: a layer has another cache than keys and values of every token.
    """
    for layer in target.architecture.layers:
        if layer.mixer is not None and layer.mixer.kind not in (
            MixerKind.FULL,
            MixerKind.RECURRENT,
        ):
            raise InputError(
                f"--kv-format {kv_format}",
                f"does not apply to the {layer.mixer.kind.value} layers of "
                f"{target.architecture.name}, which mlx-lm cannot quantize",
                "leave it out",
            )


def with_cache(kv_format: str, network: Checkpoint) -> Checkpoint:
    """A network whose cache is quantized.

    Raises:
        InputError: bits that a cache cannot have, or a network whose cache mlx-lm cannot quantize.
    """
    if kv_format not in CACHE_FORMATS:
        raise InputError(
            shared.given("--kv-format", kv_format),
            "is not a format of mlx-lm's quantized cache",
            f"give {' or '.join(CACHE_FORMATS)}",
        )
    check_cache(kv_format, network)
    return replace(network, cache_format=weight_format(kv_format))


def with_settings(options: argparse.Namespace, target: Checkpoint) -> Checkpoint:
    """The target with the cache and the routing that the options describe.

    Raises:
        InputError: bits that a cache cannot have, a share that cannot be, or a network without
            experts.
    """
    if options.kv_format is not None:
        target = with_cache(options.kv_format, target)
    if options.shared_experts is not None:
        share = shared.number("--shared-experts", options.shared_experts)
        mixtures = [layer.experts for layer in target.architecture.layers if layer.experts]
        if not mixtures:
            what = f"--shared-experts {options.shared_experts}"
            raise InputError(what, f"{target.architecture.name} has no experts", "leave it out")
        chance = max(each.top_k / each.num_experts for each in mixtures)
        if not chance <= share <= 1.0:
            what = f"--shared-experts {options.shared_experts}"
            raise InputError(what, "cannot be", f"give {chance:.3g} (chance) to 1")
        architecture = target.architecture.with_shared_choice(share)
        target = replace(target, architecture=architecture)
    return target
