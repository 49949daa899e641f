"""How the weights of a published run were stored: the formats that its quantization stands for.

The shipped table maps quantizations by hand. What it does not have is read where the text says it
in full: bits and groups ("4-bit gs32"), a type of llama.cpp, or a mean ("3.5 bpw"). A mixture
whose text does not give its bits is told by the stated size of its weights: their mean bits per
weight, everywhere in the network, under the kernels of the family. What that cannot know is where
the bits went. A mixture of experts whose attention has more bits than its experts reads more per
token than its mean, by some per cent; and where most weights have a type whose unpacking is slow,
no size says so. A quantization that is not named at all is refused, size or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import final

from calibrate.published.evidence import format_map
from calibrate.published.gguf import PREFIX, packed, stored_format
from calibrate.published.refusal import Reason, Refusal
from calibrate.published.run_row import PublishedRun
from calibrate.published.runtimes import DS4, is_llama_cpp
from model.errors import InputError
from model.network.weight_format import DEFAULT_GROUP, WeightFormat, weight_format

MLX = "mlx"
"""The column of the format table for MLX's engines."""
LEAST_BITS, MOST_BITS = 1.5, 17.0
"""Mean bits per weight that a size may come to; beyond them it is of something else."""
UNQUANTIZED_FROM_BITS = 15.5
MIXED = (
    "mix",
    "dynamic",
    "optimi",
    "speed",
    "quality",
    "stream",
    "ffn",
    "attention",
    "group",
    "see ",
)
"""Parts of words which say that a remark behind a format changes it."""

_BITS = re.compile(
    r"""(?ix)(?:mlx[ -])?([1-8])[ -]?bits?
        (?:[ -]?(?:groups?[ -]?(?:size|of)?|gs?)[ =:-]?(\d+))?
        (?:[ -](?:dwq|qat|class|quantized|affine))*"""
)
_MEAN = re.compile(r"(?i)(\d+(?:\.\d+)?) ?(?:bpw|bits?[ /](?:per[ -])?weights?)\b")
_TOP_K = re.compile(r"(?i)[ ,(]*\btop[ _-]?k ?= ?(\d+)\b(?: experts)?\)?")
_REMARK = re.compile(r"^(.*\S)\s*\(([^()]*)\)$")


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


def stored_as(run: PublishedRun, params: int | None) -> StoredAs | Refusal:
    """How a run's weights lay in memory; `params` are the target's, None where it is not known."""
    named = named_format(kernels_of(run), without_top_k(run.quant))
    if named is not None:
        return named
    sized = of_size(run, params) if run.quant and params else None
    text = run.quant or "not stated"
    return sized or Refusal(reason=Reason.UNKNOWN_FORMAT, text=text)


def of_size(run: PublishedRun, params: int) -> StoredAs | None:
    """The mean format of weights of the stated size; None without one, or with an absurd one."""
    if run.model_bytes is None:
        return None
    bits = 8.0 * run.model_bytes / params
    return of_mean_bits(bits) if LEAST_BITS <= bits <= MOST_BITS else None


def of_mean_bits(bits: float) -> StoredAs:
    """The format of so many bits per weight in the mean, scales included.

    >>> of_mean_bits(3.5).layers.bits_per_weight, of_mean_bits(16.0).layers.name
    (3.5, 'bf16')
    """
    if bits >= UNQUANTIZED_FROM_BITS:
        return StoredAs(layers=weight_format("bf16"))
    return StoredAs(layers=packed(f"{PREFIX}{bits:.2f}", bits))


def is_mean(stored: WeightFormat) -> bool:
    """Whether a format is the mean of a mixture: right in its bytes, of no kernel's speed.

    >>> is_mean(of_mean_bits(3.5).layers), is_mean(stored_format("gguf-q4_0"))
    (True, False)
    """
    return re.fullmatch(rf"{PREFIX}\d+\.\d\d", stored.name) is not None


def top_k_of(text: str) -> int | None:
    """The experts a token selects, where a target or a quantization says so."""
    found = _TOP_K.search(text)
    return None if found is None else int(found[1])


def without_top_k(quant: str) -> str:
    """A quantization without what it says of experts."""
    return _TOP_K.sub("", quant).strip()


@cache
def named_format(kernels: str, quant: str) -> StoredAs | None:
    """What a quantization's text stands for under the kernels of a runtime; None where unsaid.

    >>> named_format("mlx", "4-bit gs32").layers.name
    '4bit-g32'
    >>> named_format("mlx", "4bit (AXQ mixed)") is None
    True
    """
    quant = quant.strip()
    found = _tabled(kernels, quant) or _tabled(kernels, _plain_text(kernels, quant))
    if found is not None or not quant:
        return found
    if (mean := _MEAN.search(quant)) is not None and LEAST_BITS <= float(mean[1]) <= MOST_BITS:
        return of_mean_bits(float(mean[1]))
    if kernels == MLX and (read := _in_mlx(quant)) is not None:
        return read
    remark = _REMARK.match(quant)
    if remark is not None and not any(part in remark[2].lower() for part in MIXED):
        return named_format(kernels, remark[1])
    return None


def kernels_of(run: PublishedRun) -> str:
    """The column of the format table that a run reads."""
    if is_llama_cpp(run.runtime):
        return "llama.cpp"
    return DS4 if run.runtime.lower().startswith(DS4) else MLX


def _plain_text(kernels: str, quant: str) -> str:
    """A quantization as the table writes it: no "GGUF", and types of llama.cpp in capitals."""
    text = re.sub(r"(?i)(^gguf[ -]+|[ .-]+gguf$|^unsloth[ /]+)", "", quant)
    if kernels != "llama.cpp":
        return text
    # Q8 and Q6 have one type each; of Q5 and below a file may be any of several.
    return {"Q8": "Q8_0", "Q6": "Q6_K"}.get(text.upper(), text.upper())


def _in_mlx(quant: str) -> StoredAs | None:
    """A format of MLX, by its bits and groups or by its own name."""
    match = _BITS.fullmatch(" ".join(re.sub(r"[(),]", " ", quant).split()))
    name = quant.lower()
    if match is not None:
        group = int(match[2] or DEFAULT_GROUP)
        name = f"{match[1]}bit" + f"-g{group}" * (group != DEFAULT_GROUP)
    try:
        return StoredAs(layers=stored_format(name))
    except (InputError, KeyError):
        return None


@cache
def _tabled(kernels: str, quant: str) -> StoredAs | None:
    entry = _entries().get((kernels, quant))
    if entry is None:
        return None
    outside = entry["outside_experts"]
    return StoredAs(
        layers=stored_format(entry["layers"]),
        head=stored_format(entry["head"]) if entry["head"] else None,
        outside_experts=stored_format(outside) if outside else None,
        named=tuple(_named(entry.get("named") or "")),
    )


def _named(patterns: str) -> Iterator[tuple[str, WeightFormat]]:
    """Patterns of paths and their formats, from `pattern=format` with blanks between."""
    for each in patterns.split():
        pattern, _, name = each.partition("=")
        yield pattern, stored_format(name)


@cache
def _entries() -> dict[tuple[str, str], Mapping[str, str]]:
    return {(each["runtime"], each["quant"]): each for each in format_map()}
