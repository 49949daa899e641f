"""Cells of others' tables as numbers, and names of files as names of models.

A person may have edited the output: thousands may be set apart by commas and a unit may follow.
What could be read in two ways is refused, not guessed at.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath

from model.errors import InputError
from model.units import GIB

NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?")
# As llama.cpp writes it, as a wrong code page shows it (Latin-1, CP437), and as people type it.
SPREAD = re.compile(r"\s*(?:Â?±|┬▒|\+/-)\s*")
RATE_UNITS = ("t/s", "tok/s", "tokens/s", "tokens-per-sec")
SIZES = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": GIB, "TiB": 2.0**40}
COUNTS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}

GGUF_QUANT = re.compile(
    r"(?:UD-)?(?:I?Q\d_[A-Z0-9_]+|TQ\d_\d|MXFP4(?:_MOE)?|BF16|F16|F32)$", re.IGNORECASE
)
MLX_QUANT = re.compile(r"(?:-MLX)?[-_](\d{1,2}bit|bf16|fp16|mxfp[48]|nvfp4)$", re.IGNORECASE)
NAMELESS = re.compile(r"(?:ggml-)?model|(?:sha256[-:])?[0-9a-f]{32,}", re.IGNORECASE)
SHARD = re.compile(r"-\d{5}-of-\d{5}$")
SIZE_WORDS = {"Small": "S", "Medium": "M", "Large": "L"}


def plain_number(cell: str, place: str, units: tuple[str, ...] = ()) -> float:
    """The number in a cell; one of `units` may follow it.

    Raises:
        InputError: there is no number, or its comma may be a decimal one.

    >>> plain_number("1,436.51 t/s", "a.md, line 3", ("t/s",))
    1436.51
    """
    bare = cell.strip().strip("*`").strip()
    for unit in units:
        bare = bare.removesuffix(unit).rstrip()
    if NUMBER.fullmatch(bare):
        return float(bare.replace(",", ""))
    where = f"{place}: {cell.strip()[:40]!r}"
    if re.fullmatch(r"[\d.,]+", bare) and "," in bare:
        raise InputError(where, "has a comma that may be a decimal one", "write it as 1234.5")
    raise InputError(where, "is not a number", "give the benchmark's output as it was printed")


def rate(cell: str, place: str) -> tuple[float, float | None]:
    """Tokens per second, and their standard deviation where the cell gives it.

    >>> rate("132.19 ± 0.55", "a.md, line 3")
    (132.19, 0.55)
    """
    mean, *spread = SPREAD.split(cell.strip().strip("*`"), maxsplit=1)
    value = plain_number(mean, place, RATE_UNITS)
    if value <= 0.0:
        raise InputError(f"{place}: {cell.strip()[:40]!r}", "is no rate", "give one above 0")
    return value, plain_number(spread[0], place, RATE_UNITS) if spread else None


def whole(cell: str, place: str) -> int:
    """A count of 0 or more."""
    value = plain_number(cell, place)
    if value < 0 or value != int(value):
        raise InputError(f"{place}: {cell.strip()[:40]!r}", "is no count", "give a whole number")
    return int(value)


def scaled(cell: str, place: str, factors: dict[str, float]) -> float:
    """A number with its unit, in the unit that has factor 1.

    >>> scaled("751.63 M", "a.md, line 3", COUNTS)
    751630000.0
    """
    number, _, unit = cell.strip().rpartition(" ")
    if unit not in factors:
        known = ", ".join(factors)
        raise InputError(f"{place}: {cell.strip()[:40]!r}", "has no unit", f"one of {known}")
    return plain_number(number, place) * factors[unit]


def written(value: float) -> str:
    """A number as a cell: as many digits as any tool prints, and no more."""
    return f"{value:.10g}"


def chip_name(text: str) -> str:
    """A chip without its maker, as the shipped tables write Apple's; other names as they are.

    >>> chip_name("Accelerate, Apple M1 Ultra"), chip_name("NVIDIA GeForce RTX 4080")
    ('M1 Ultra', 'NVIDIA GeForce RTX 4080')
    """
    return re.sub(r"\bApple (?=M\d)", "", text.strip().removeprefix("Accelerate, ")).strip()


def file_type(words: str) -> str:
    """The quantization in llama.cpp's words as its file names write it.

    >>> file_type("Q4_K - Medium"), file_type("mostly Q4_0"), file_type("IQ4_NL - 4.5 bpw")
    ('Q4_K_M', 'Q4_0', 'IQ4_NL')
    """
    bare = words.removeprefix("mostly ").removeprefix("all ").removesuffix(" MoE")
    name, _, size = bare.partition(" - ")
    return f"{name}_{SIZE_WORDS[size]}" if size in SIZE_WORDS else name


def gguf_name(path: str) -> tuple[str, str]:
    """The model and the quantization in a GGUF file's name; empty where it says neither.

    >>> gguf_name("models/Qwen2.5-7B-Instruct-Q4_K_M.gguf")
    ('Qwen2.5-7B-Instruct', 'Q4_K_M')
    >>> gguf_name("models/7B/ggml-model-q4_0.gguf")
    ('', 'Q4_0')
    """
    name = PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
    stem = SHARD.sub("", name.removesuffix(".gguf").removesuffix(".bin"))
    found = GGUF_QUANT.search(stem)
    quant = found.group().upper() if found else ""
    model = stem[: found.start()].rstrip("-._") if found else stem
    return ("" if NAMELESS.fullmatch(model) else model), quant


def mlx_name(repository: str) -> tuple[str, str]:
    """The model and the weight format in the name of an MLX repository or folder.

    >>> mlx_name("mlx-community/Qwen3-4B-Instruct-4bit"), mlx_name("Qwen/Qwen3-4B")
    (('Qwen3-4B-Instruct', '4bit'), ('Qwen3-4B', ''))
    """
    name = repository.rstrip("/").rpartition("/")[2]
    found = MLX_QUANT.search(name)
    return (name[: found.start()], found[1].lower()) if found else (name, "")
