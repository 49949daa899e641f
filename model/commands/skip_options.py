"""Which layers a draft of the target's own skips, by share or by number."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from model.commands import options as shared
from model.errors import InputError
from model.network.architecture import Architecture
from model.network.sublayers import Half, Sublayer, middle_block


def skipped_sets(
    options: argparse.Namespace, architecture: Architecture, shown: Sequence[float]
) -> Iterator[frozenset[Sublayer]]:
    """What `--skip`, `--skip-attention` and `--skip-mlp` name, or else each share of `shown`.

    Raises:
        InputError: no layers, or a share beside layers by number.
    """
    if options.skip_attention is not None or options.skip_mlp is not None:
        if options.skip is not None:
            raise InputError(
                f"--skip {options.skip}", "is a share beside layers by number", "give either"
            )
        yield frozenset(
            Sublayer(layer=shared.whole_number(flag, index, least=0, most=4096), half=half)
            for flag, text, half in (
                ("--skip-attention", options.skip_attention, Half.MIXER),
                ("--skip-mlp", options.skip_mlp, Half.MLP),
            )
            if text is not None
            for index in text.split(",")
        )
    elif options.skip is not None:
        yield share_of_layers("--skip", options.skip, architecture)
    elif shown:
        for fraction in shown:
            yield middle_block(architecture, fraction)
    else:
        raise InputError("skipped layers", "are not given", "add --skip 0.25")


def share_of_layers(flag: str, text: str, architecture: Architecture) -> frozenset[Sublayer]:
    """The middle layers that a share stands for.

    Raises:
        InputError: no share of layers, or one that rounds to none of them.
    """
    skipped = middle_block(architecture, shared.number(flag, text))
    if not skipped:
        depth = len(architecture.layers)
        wrong = f"skips none of the {depth} layers of {architecture.name}"
        raise InputError(f"{flag} {text}", wrong, f"give {1 / depth:.3f} or more")
    return skipped
