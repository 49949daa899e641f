r"""Which halves of which blocks a pass leaves out, and the network that remains.

A block is a mixer (attention) and an MLP; either can be skipped, since each only adds to the
residual stream. What remains shares every weight with the whole network, keeps caches of its own
for the mixers it runs, and still ends in the final norm and the head: the head is read at every
draft step however much is skipped.

Uniform-middle skipping keeps the first and the last blocks, where the representation enters and
leaves the vocabulary's space, and drops a run of whole blocks in between (Zhang et al. 2023,
"Draft & Verify", arXiv 2309.08168, skip sublayers one by one instead).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import final

from model.errors import InputError
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint
from model.network.layer import Layer
from model.network.mixer import Attention


class Half(StrEnum):
    """One half of a block."""

    MIXER = "attention"
    MLP = "mlp"


@final
@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Sublayer:
    """The mixer or the MLP of a layer, counted from 0."""

    layer: int
    half: Half


def sublayers(architecture: Architecture) -> tuple[Sublayer, ...]:
    """Every sublayer in order of execution."""
    return tuple(
        Sublayer(layer=index, half=half)
        for index, layer in enumerate(architecture.layers)
        for half in (Half.MIXER, Half.MLP)
        if (layer.mixer is not None if half is Half.MIXER else layer.has_mlp)
    )


def middle_block(architecture: Architecture, fraction: float) -> frozenset[Sublayer]:
    """A run of whole blocks about the middle, `fraction` of all of them, rounded.

    The first and the last block are never among them.

    Raises:
        InputError: a fraction outside [0, 1), or one that leaves fewer than two blocks.
    """
    depth = len(architecture.layers)
    if not 0.0 <= fraction < 1.0:
        raise InputError(
            f"skip fraction {fraction:g}",
            "would leave no layer to draft with" if fraction >= 1.0 else "is no share of them",
            "give a share of the layers from 0 to below 1",
        )
    if depth < 3:
        wrong = f"has {depth} layers, and the first and last have to stay"
        raise InputError(architecture.name, wrong, "choose a deeper network")
    count = round(fraction * depth)
    if count > depth - 2:
        raise InputError(
            f"skip fraction {fraction:g}",
            f"leaves {depth - count} of {depth} layers, the first and last have to stay",
            f"give at most {(depth - 2) / depth:.3g}",
        )
    first = (depth - count) // 2
    skipped = range(first, first + count)
    return frozenset(each for each in sublayers(architecture) if each.layer in skipped)


@lru_cache(maxsize=256)
def without(checkpoint: Checkpoint, skipped: frozenset[Sublayer]) -> Checkpoint:
    """The network that skips these sublayers; layers keep their numbers and so their formats.

    Raises:
        InputError: a sublayer that the network does not have or whose cache others read, or
            nothing left to run.
    """
    architecture = checkpoint.architecture
    known = set(sublayers(architecture))
    shared = skipped & lent_caches(architecture)
    for each in sorted(shared):
        raise InputError(
            f"attention of layer {each.layer}",
            f"keeps a cache that later layers of {architecture.name} read",
            "leave it in the draft",
        )
    for each in sorted(skipped - known):
        raise InputError(
            f"sublayer {each.half} of layer {each.layer}",
            f"is not in {architecture.name}",
            f"layers are numbered 0 to {len(architecture.layers) - 1}",
        )
    if skipped >= known:
        raise InputError(
            f"skipping all {len(known)} sublayers of {architecture.name}",
            "leaves nothing to draft with",
            "keep at least one",
        )
    layers = tuple(
        kept_halves(layer, index, skipped) for index, layer in enumerate(architecture.layers)
    )
    name = f"{architecture.name} without {len(skipped)} sublayers"
    return replace(checkpoint, architecture=replace(architecture, name=name, layers=layers))


def lent_caches(architecture: Architecture) -> frozenset[Sublayer]:
    """The mixers whose cache layers without one of their own read: the last of each window."""
    lenders: dict[int | None, Sublayer] = {}
    lent: set[Sublayer] = set()
    for index, layer in enumerate(architecture.layers):
        mixer = layer.mixer
        if not isinstance(mixer, Attention):
            continue
        if mixer.owns_cache:
            lenders[mixer.window] = Sublayer(layer=index, half=Half.MIXER)
        elif mixer.window in lenders:
            lent.add(lenders[mixer.window])
    return frozenset(lent)


def kept_halves(layer: Layer, index: int, skipped: frozenset[Sublayer]) -> Layer:
    """The layer without the halves that are skipped; an empty one costs nothing."""
    if Sublayer(layer=index, half=Half.MIXER) in skipped:
        layer = replace(layer, mixer=None, mixer_siblings=())
    if Sublayer(layer=index, half=Half.MLP) in skipped:
        layer = replace(layer, mlp_siblings=(), experts=None)
    return layer
