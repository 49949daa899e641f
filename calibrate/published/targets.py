"""What a published run ran, as the model knows it: its network, in the format it lay in memory.

The shipped table maps names by hand to shipped networks, or to nothing. A name it does not have is
looked for by its spelling, among the table's names and among the shipped networks; what neither
has is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache

from calibrate.published.evidence import name_map
from calibrate.published.formats import MLX, StoredAs, kernels_of, stored_as, top_k_of
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.published.runtimes import DS4
from calibrate.published.spelling import spelled
from model import catalog
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint, Overrides
from model.network.selection import in_place
from model.network.target import load_target
from model.network.weight_format import WeightFormat, weight_format


def target_of(run: PublishedRun) -> Checkpoint | Refusal:
    """The target as it lay in memory."""
    file = _file_of(run)
    if isinstance(file, Refusal):
        return file
    stored = _stored_as(run)
    if isinstance(stored, Refusal):
        return stored
    tabled = _tabled().get(run.target, {}).get("top_k", "")
    top_k = int(tabled) if tabled else top_k_of(run.quant) or top_k_of(run.target) or 0
    checkpoint, kernels = checkpoint_of(file, top_k, stored), kernels_of(run)
    return checkpoint if kernels == MLX else _as_others_hold(checkpoint, kernels)


@lru_cache(maxsize=512)
def _as_others_hold(checkpoint: Checkpoint, kernels: str) -> Checkpoint:
    """As llama.cpp and ds4 do: caches added to in place, ds4's in 32 bits (`ds4.c`)."""
    return replace(
        checkpoint,
        architecture=in_place(checkpoint.architecture),
        cache_format=weight_format("fp32") if kernels == DS4 else None,
    )


def format_of(run: PublishedRun) -> WeightFormat | Refusal:
    """The format of most of the target's weights."""
    stored = _stored_as(run)
    return stored if isinstance(stored, Refusal) else stored.layers


def _stored_as(run: PublishedRun) -> StoredAs | Refusal:
    file = _file_of(run)
    known = not isinstance(file, Refusal)
    return stored_as(run, load_target(file).architecture.params if known else None)


@lru_cache(maxsize=1024)
def checkpoint_of(file: str, top_k: int, stored: StoredAs) -> Checkpoint:
    """A shipped network in its formats; `top_k` experts a token, or its own number where 0."""
    checkpoint = load_target(file)
    architecture = checkpoint.architecture
    if top_k:
        architecture = _with_top_k(architecture, top_k)
    return Checkpoint(
        architecture=architecture,
        weight_format=stored.layers,
        overrides=Overrides(dict(_other_formats(architecture, stored))),
    )


def _other_formats(
    architecture: Architecture, stored: StoredAs
) -> Iterator[tuple[str, WeightFormat]]:
    """Formats by path of what is not stored as most of the weights are."""
    outside = stored.outside_experts
    if outside is not None:
        for index, layer in enumerate(architecture.layers):
            routed = {
                matrix.name
                for siblings in (layer.experts.siblings if layer.experts is not None else ())
                for matrix in siblings.matrices
            }
            for matrix in layer.matrices:
                # A router that is a bare array is left alone by MLX and by llama.cpp.
                if matrix.quantizes and matrix.name not in routed and outside.fits(matrix.depth):
                    yield architecture.layer_path(index, matrix), outside
        yield architecture.outer_path(architecture.embedding), outside
    if stored.head is not None and stored.head.fits(architecture.head.depth):
        yield architecture.outer_path(architecture.head), stored.head
    for pattern, stored_format in stored.named:
        for path in _paths(architecture):
            if fnmatchcase(path, pattern):
                yield path, stored_format


def _paths(architecture: Architecture) -> Iterator[str]:
    """The full MLX path of every matrix but the logits'."""
    for index, layer in enumerate(architecture.layers):
        for matrix in layer.matrices:
            yield architecture.layer_path(index, matrix)
    for matrix in (architecture.embedding, *architecture.entry_matrices):
        yield architecture.outer_path(matrix)


def _with_top_k(architecture: Architecture, top_k: int) -> Architecture:
    """The same network of which every token selects so many experts."""
    layers = tuple(
        layer
        if layer.experts is None
        else replace(layer, experts=replace(layer.experts, top_k=top_k))
        for layer in architecture.layers
    )
    return replace(architecture, name=f"{architecture.name}-top{top_k}", layers=layers)


def _file_of(run: PublishedRun) -> str | Refusal:
    entry = _tabled().get(run.target)
    file = shipped_by_key().get(spelled(run.target).key) if entry is None else entry["file"]
    if file:
        return file
    why = f" ({entry['remark']})" if entry is not None and entry["remark"] else ""
    return Refusal(reason=Reason.UNKNOWN_TARGET, text=f"{run.target or 'not named'}{why}")


@cache
def shipped_by_key() -> dict[str, str]:
    """Shipped networks by the key of every name they are known by; none where names disagree."""
    found: dict[str, set[str]] = {}
    for name, entry in _tabled().items():
        if "assumed" not in entry["remark"]:
            found.setdefault(spelled(name).key, set()).add(entry["file"])
    known = {key: min(files) for key, files in found.items() if len(files) == 1}
    # A network's own name goes before what others call it.
    return known | {spelled(name).key: name for name in catalog.architecture_names()}


@cache
def _tabled() -> dict[str, Mapping[str, str]]:
    return {each["name"]: each for each in name_map() if each["role"] == "target"}
