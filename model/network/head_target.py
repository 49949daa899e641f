"""What a person names as a draft head, as a checkpoint bound to its target.

A head is a name from the catalog, a folder with a config.json, a config.json, or `hf:owner/name`,
of which only the config is fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from model import catalog
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint, Overrides
from model.network.config.heads import read_head
from model.network.config.quantization import stated_checkpoint
from model.network.draft_head import DraftHead, HeadKind
from model.network.target import ConfigDocument, load_config
from model.network.weight_format import weight_format


def load_head(
    spec: str, format_name: str | None, target: Checkpoint
) -> tuple[Checkpoint, DraftHead]:
    """The head that `spec` names, bound to this target, and what its config says of it.

    The head's own matrices have the format asked for, else the one its config states, else bf16; a
    table that it borrows has the target's. EAGLE-3 stores the target's embedding too, and shares
    it where both have one format, which is when mlx-vlm 0.7.10 does.

    Raises:
        InputError: there is no such head, its config cannot be read, there is no such format, or
            the head is of another target.

    >>> from model.network.target import load_target
    >>> head, kind = load_head("qwen3-4b-dflash", "4bit", load_target("qwen3-4b", "4bit"))
    >>> kind.longest_draft, head.total_bytes, head.head_bytes
    (15, 302348800, 218787840)
    """
    document = _document(spec)
    found = read_head(document.config, name=document.name, source=document.source)
    found.check_target(target.architecture)
    head = replace(found, architecture=_bound(found.architecture, target.architecture))
    stated = stated_checkpoint(document.config, head.architecture) if format_name is None else None
    checkpoint = stated or Checkpoint(
        architecture=head.architecture, weight_format=weight_format(format_name or "bf16")
    )
    architecture = head.architecture
    if head.kind is HeadKind.EAGLE and _shares_embedding(checkpoint, target):
        architecture = replace(architecture, borrows_embedding=True)
    formats = dict(checkpoint.overrides)
    if architecture.borrows_head:
        borrowed = target.head_formats[target.architecture.head.name]
        unquantized = not borrowed.group_size
        formats[architecture.outer_path(architecture.head)] = None if unquantized else borrowed
    bound = replace(checkpoint, architecture=architecture, overrides=Overrides(formats))
    if 32 in (bound.weight_format.scale_bits, bound.weight_format.bits):
        bound = bound.in_float32()
    return bound, replace(head, architecture=architecture)


@cache  # what is packaged stays
def heads_of(target: str) -> tuple[str, ...]:
    """The shipped heads that were trained for a target of this name."""
    return tuple(
        name for name in catalog.head_names() if catalog.head_config(name).get("_target") == target
    )


def head_config(spec: str) -> Mapping[str, object]:
    """The config.json of the head that `spec` names.

    Raises:
        InputError: there is no such head, or its config cannot be read.
    """
    return _document(spec).config


def _document(spec: str) -> ConfigDocument:
    elsewhere = spec.startswith("hf:") or "/" in spec or Path(spec).exists()
    a_model = spec.lower() in catalog.architecture_names()
    if a_model:  # a refusal names what was asked for, not where its config came from
        return replace(load_config(spec), source=f"head {spec}")
    if elsewhere and spec.lower() not in catalog.head_names():
        return load_config(spec)
    config = catalog.head_config(spec)
    return ConfigDocument(name=spec.lower(), source=str(config["_source"]), config=config)


def _bound(head: Architecture, target: Architecture) -> Architecture:
    """The head with the target's own matrix where it borrows the logits."""
    if not head.borrows_head:
        return head
    return replace(head, head=target.head, module_prefix=target.module_prefix)


def _shares_embedding(head: Checkpoint, target: Checkpoint) -> bool:
    ours, theirs = head.architecture, target.architecture
    same_table = (ours.vocab_size, ours.hidden_size) == (theirs.vocab_size, theirs.hidden_size)
    return same_table and _embedding_format(head) == _embedding_format(target)


def _embedding_format(checkpoint: Checkpoint) -> object:
    embedding = checkpoint.architecture.embedding
    return checkpoint.matrix_format(checkpoint.architecture.outer_path(embedding), embedding)
