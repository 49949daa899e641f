"""What a published run ran: its target, its draft and their formats, as the model knows them.

The shipped tables map every name in the evidence by hand to a shipped network and a weight
format, or to nothing. What they do not know is refused; no name is taken apart and guessed at,
but for a file of runs that names shipped networks and formats as tokroof does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import final

from calibrate.published.chips import Chip, chip_of
from calibrate.published.evidence import format_map, name_map
from calibrate.published.gguf import packed, stored_format
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.published.runtimes import DS4, runtime_family
from model import catalog
from model.errors import InputError
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint, Overrides
from model.network.draft_head import DraftHead
from model.network.head_target import load_head
from model.network.selection import in_place
from model.network.target import load_target
from model.network.weight_format import WeightFormat, weight_format

__all__ = ["Chip", "Draft", "chip_of", "draft_of", "format_of", "runtime_family", "target_of"]

SIZE_TELLS_BITS = ("UD-", "Q4-class")
"""How quantizations begin whose mixture is not known, but told by the size of the file."""
MLX = "mlx"
"""The column of the format table for MLX's engines."""
LEAST_BITS, MOST_BITS = 1.5, 17.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What drafts: a model of its own, or a head that belongs to the target."""

    checkpoint: Checkpoint
    head: DraftHead | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAs:
    """The formats of a quantization: of layers, of the head, and of layers outside experts.

    `named` are patterns of full MLX paths with formats of their own; the last that fits decides.
    """

    layers: WeightFormat
    head: WeightFormat | None = None
    outside_experts: WeightFormat | None = None
    named: tuple[tuple[str, WeightFormat], ...] = ()


def target_of(run: PublishedRun) -> Checkpoint | Refusal:
    """The target as it lay in memory."""
    entry = _target_entry(run)
    if isinstance(entry, Refusal):
        return entry
    stored = _stored_as(run)
    if isinstance(stored, Refusal):
        return stored
    checkpoint = _checkpoint(entry["file"], int(entry["top_k"] or 0), stored)
    return checkpoint if _kernels(run) == MLX else _as_others_hold(checkpoint, _kernels(run))


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


def draft_of(run: PublishedRun, target: Checkpoint) -> Draft | Refusal:
    """The draft model or head of a run, bound to its target.

    A format that is not stated is the target's, but for block drafters and ReDrafter, which were
    published in 16 bits.
    """
    name = run.draft or "not named"
    entry = _draft_entries().get((run.draft, run.target)) or _shipped_entry(run.draft)
    if entry is None or not entry["file"]:
        why = f" ({entry['remark']})" if entry is not None and entry["remark"] else ""
        return Refusal(reason=Reason.UNKNOWN_DRAFT, text=f"{name}{why}")
    stated = _named_format(_kernels(run), entry["format"]) if entry["format"] else None
    try:
        return _draft(entry["file"], stated, target)
    except InputError as error:
        return Refusal(reason=Reason.UNKNOWN_DRAFT, text=str(error))


@lru_cache(maxsize=512)
def _draft(file: str, stated: StoredAs | None, target: Checkpoint) -> Draft:
    if file in catalog.architecture_names():
        own = StoredAs(layers=target.weight_format)
        return Draft(checkpoint=_checkpoint(file, 0, stated or own), head=None)
    checkpoint, head = load_head(file, None, target)
    if stated is None and not (head.kind.drafts_blocks or head.kind.value == "redrafter"):
        stated = StoredAs(layers=target.weight_format)
    if stated is not None:
        checkpoint = replace(checkpoint, weight_format=stated.layers)
    return Draft(checkpoint=checkpoint, head=head)


@lru_cache(maxsize=1024)
def _checkpoint(file: str, top_k: int, stored: StoredAs) -> Checkpoint:
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
    for pattern, stored_as in stored.named:
        for path in _paths(architecture):
            if fnmatchcase(path, pattern):
                yield path, stored_as


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


def _stored_as(run: PublishedRun) -> StoredAs | Refusal:
    named = _named_format(_kernels(run), run.quant)
    if named is not None:
        return named
    if run.model_bytes is not None and run.quant.startswith(SIZE_TELLS_BITS):
        entry = _target_entry(run)
        if not isinstance(entry, Refusal):
            params = load_target(entry["file"]).architecture.params
            bits = 8.0 * run.model_bytes / params
            if LEAST_BITS <= bits <= MOST_BITS:
                return StoredAs(layers=packed(f"gguf-{bits:.2f}", bits))
    return Refusal(reason=Reason.UNKNOWN_FORMAT, text=run.quant or "not stated")


@cache
def _named_format(kernels: str, quant: str) -> StoredAs | None:
    entry = _format_entries().get((kernels, quant))
    if entry is not None:
        outside = entry["outside_experts"]
        return StoredAs(
            layers=stored_format(entry["layers"]),
            head=stored_format(entry["head"]) if entry["head"] else None,
            outside_experts=stored_format(outside) if outside else None,
            named=tuple(_named(entry.get("named") or "")),
        )
    if kernels != MLX or not quant:
        return None
    try:
        return StoredAs(layers=stored_format(quant.lower()))
    except InputError:
        return None


def _named(patterns: str) -> Iterator[tuple[str, WeightFormat]]:
    """Patterns of paths and their formats, from `pattern=format` with blanks between."""
    for each in patterns.split():
        pattern, _, name = each.partition("=")
        yield pattern, stored_format(name)


def _kernels(run: PublishedRun) -> str:
    """The column of the format table that a run reads."""
    runtime = run.runtime.lower()
    return next((each for each in (DS4, "llama.cpp") if runtime.startswith(each)), MLX)


def _target_entry(run: PublishedRun) -> Mapping[str, str] | Refusal:
    entry = _target_entries().get(run.target) or _shipped_entry(run.target)
    if entry is None or not entry["file"]:
        why = f" ({entry['remark']})" if entry is not None and entry["remark"] else ""
        return Refusal(reason=Reason.UNKNOWN_TARGET, text=f"{run.target or 'not named'}{why}")
    return entry


def _shipped_entry(name: str) -> Mapping[str, str] | None:
    """The entry of a network that is called as tokroof itself calls it."""
    file = name.lower()
    if file not in catalog.architecture_names() and file not in catalog.head_names():
        return None
    return {"file": file, "format": "", "top_k": "", "remark": ""}


@cache
def _target_entries() -> dict[str, Mapping[str, str]]:
    return {each["name"]: each for each in name_map() if each["role"] == "target"}


@cache
def _draft_entries() -> dict[tuple[str, str], Mapping[str, str]]:
    return {(each["name"], each["target"]): each for each in name_map() if each["role"] == "draft"}


@cache
def _format_entries() -> dict[tuple[str, str], Mapping[str, str]]:
    return {(each["runtime"], each["quant"]): each for each in format_map()}
