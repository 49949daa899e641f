"""A draft that is the target itself without some attention and MLP sublayers.

It shares every weight and has caches of its own, one for each attention that it keeps, which
mlx-lm's speculation fills and rolls back like those of any draft. A block of which both halves
are skipped passes its input on and costs nothing. A block that keeps one half is mlx-lm's own
block whose other half gives 0: what is left of it is one addition. So the residual stream is
whatever the architecture makes of it (scaled, parallel, with norms behind), and no architecture
is written down here twice.
"""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, final

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache

from calibrate.networks import Network
from model.errors import InputError
from model.network.sublayers import Half, Sublayer

HALVES = {Half.MIXER: "self_attn", Half.MLP: "mlp"}
"""mlx-lm's names of the two halves of a block."""


def self_draft(target: Network, skipped: frozenset[Sublayer]) -> Network:
    """The network that drafts for `target` without `skipped`; it allocates nothing.

    Raises:
        InputError: the target's blocks are not made of two such halves, its layers do not have
            one cache each, it has no such sublayer, or nothing would be left.
    """
    layers = list(target.model.layers)
    check_blocks(target, layers)
    for each in sorted(skipped):
        if not 0 <= each.layer < len(layers):
            right = f"layers are numbered 0 to {len(layers) - 1}"
            what = f"sublayer {each.half} of layer {each.layer}"
            raise InputError(what, f"is not in {target.name}", right)
    if len(skipped) == 2 * len(layers):
        wrong = "leaves nothing to draft with"
        raise InputError(f"skipping all of {target.name}", wrong, "keep at least one sublayer")
    parts = [_without(block, index, skipped) for index, block in enumerate(layers)]
    keeps = [Sublayer(layer=i, half=Half.MIXER) not in skipped for i in range(len(layers))]
    return replace(
        target,
        model=SkippingModel(with_layers(target.model, parts), target.model, keeps),
        name=f"{target.name} without {len(skipped)} sublayers",
    )


def check_blocks(target: Network, layers: list[Any]) -> None:
    """Refuse a network whose blocks do not have two halves and a cache each.

    Raises:
        InputError: such a block.
    """
    for index, block in enumerate(layers):
        missing = next((name for name in HALVES.values() if name not in block), None)
        if missing:
            wrong = f"has a block {index} without {missing}, so its halves cannot be told apart"
            raise InputError(target.name, wrong, "skip layers of a Llama-like network")
    if len(make_prompt_cache(target.model)) != len(layers):
        wrong = "has layers that share caches"
        raise InputError(target.name, wrong, "skip layers of a network with a cache for each")


@final
class SkippingModel:
    """A model with the call that mlx-lm's loops make, whose caches are those of kept attention."""

    def __init__(self, model: Any, whole: Any, keeps: list[bool]) -> None:
        self._model = model
        self._whole = whole
        self._keeps = keeps
        self.args = getattr(whole, "args", None)
        self.layers = [layer for layer, kept in zip(whole.layers, keeps, strict=True) if kept]

    def make_cache(self) -> list[Any]:
        """New caches of the kept attention."""
        caches = make_prompt_cache(self._whole)
        return [cache for cache, kept in zip(caches, self._keeps, strict=True) if kept]

    def __call__(self, tokens: mx.array, cache: list[Any]) -> mx.array:
        """Logits; a block without attention gets no cache."""
        kept = iter(cache)
        return self._model(tokens, cache=[next(kept) if keeps else None for keeps in self._keeps])


@final
class PassedOn:
    """A block of which nothing runs; the rest of the model may still look at its attributes."""

    def __init__(self, block: Any) -> None:
        self._block = block

    def __getattr__(self, name: str) -> Any:
        return getattr(self._block, name)

    def __call__(self, x: mx.array, *_: Any, **__: Any) -> mx.array:
        """The input."""
        return x


@final
class Nothing:
    """Half of a block that adds 0 to the residual stream."""

    def __init__(self, half: Any) -> None:
        self._half = half

    def __getattr__(self, name: str) -> Any:
        return getattr(self._half, name)

    def __call__(self, x: mx.array, *_: Any, **__: Any) -> mx.array:
        """Zeros as wide as the stream; the norm before it is never computed."""
        return mx.zeros(x.shape[-1:], x.dtype)


def with_layers(model: Any, layers: list[Any]) -> Any:
    """A shallow copy of a model whose blocks are these; all other parts and weights are shared."""
    own = [id(block) for block in model.layers]

    def is_own(value: Any) -> bool:
        # Some models give their blocks in a list of its own each time.
        return type(value) is list and [id(each) for each in value] == own

    path = next(
        path for path, part in model.named_modules() if any(is_own(each) for each in part.values())
    )
    outer = inner = copy.copy(model)
    for name in path.split(".") if path else ():
        setattr(inner, name, copy.copy(getattr(inner, name)))
        inner = getattr(inner, name)
    inner[next(name for name, value in inner.items() if is_own(value))] = layers
    return outer


def _without(block: Any, index: int, skipped: frozenset[Sublayer]) -> Any:
    gone = [half for half in HALVES if Sublayer(layer=index, half=half) in skipped]
    if not gone:
        return block
    if len(gone) == len(HALVES):
        return PassedOn(block)
    rest = copy.copy(block)
    name = HALVES[gone[0]]
    rest[name] = Nothing(block[name])
    return rest
