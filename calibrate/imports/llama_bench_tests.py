"""Tests of llama-bench as records, from any of its output formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

from calibrate.imports import llama_cpp
from calibrate.imports.cells import (
    COUNTS,
    SIZES,
    chip_name,
    file_type,
    gguf_name,
    plain_number,
    rate,
    scaled,
    whole,
    written,
)
from calibrate.imports.documents import csv_rows, json_objects, last_above, markdown_rows
from calibrate.imports.shell import NO_COMMAND, commands
from model.errors import InputError
from model.units import GB

JSON_SIGN = re.compile(r'"n_gen"\s*:')
RAW = ("n_prompt", "n_gen", "avg_ts")
MARKDOWN = ("model", "size", "params", "test", "t/s")
TEST = re.compile(r"(?:pp ?(\d+))?\+?(?:tg ?(\d+))?(?: @ d(\d+))?")
BUILD = re.compile(r"^build: (\w+) \((\d+)\)", re.MULTILINE)
MODEL_TYPE = re.compile(
    r"(.+?) ((?:mostly |all )?(?:I?Q\d\S*|TQ\d_\d|MXFP4(?: MoE)?|NVFP4|BF16|F16|F32)(?: - .+)?)"
)
"""Architecture and size ("qwen3moe 30B.A3B"), then the file type ("Q4_K - Medium")."""

USUAL = {
    "n_gpu_layers": ("-1", "99", "999"),
    "n_cpu_moe": ("0",),
    "type_k": ("f16",),
    "type_v": ("f16",),
    "flash_attn": ("-1",),
    "no_kv_offload": ("0",),
    "tensor_split": ("0.00",),
    "tensor_buft_overrides": ("none",),
    "devices": ("auto",),
    "n_batch": ("2048",),
    "n_ubatch": ("512",),
}
"""Settings that change a rate, by what they usually are; any other value goes into the notes."""
DISPLAYED = {
    "ngl": "n_gpu_layers",
    "fa": "flash_attn",
    "nkvo": "no_kv_offload",
    "ts": "tensor_split",
    "ot": "tensor_buft_overrides",
    "dev": "devices",
}
"""Columns of the Markdown table that have a name of their own there."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One test; `about` are the cells that tests of the same settings share."""

    place: str
    prompt_tokens: int
    output_tokens: int
    depth_tokens: int
    tokens_per_s: float
    stddev: float | None
    time: str
    about: Mapping[str, str]
    described: frozenset[str]

    @property
    def name(self) -> str:
        """The test as the Markdown table names it."""
        parts = (("pp", self.prompt_tokens), ("tg", self.output_tokens))
        return "+".join(f"{kind}{tokens}" for kind, tokens in parts if tokens)


def raw_tests(text: str, where: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The fields of every test in JSON, JSON lines or CSV, as text."""
    if JSON_SIGN.search(text):
        for place, fields in json_objects(text, where):
            yield place, {name: as_text(value) for name, value in fields.items()}
    for number, fields in csv_rows(text, where, RAW):
        yield f"line {number}", fields


def as_text(value: object) -> str:
    """A JSON value as the CSV of llama-bench has it."""
    if isinstance(value, bool):
        return str(int(value))
    return "" if value is None else str(value)


def raw_test(fields: Mapping[str, str], where: str, place: str) -> Test:
    """A test from the fields that JSON and CSV share."""
    here = f"{where}, {place}"
    for name in RAW:
        if not fields.get(name):
            raise InputError(here, f"has no {name}", "give the whole output of llama-bench")
    layers, kind = fields.get("n_gpu_layers", ""), fields.get("model_type", "")
    target, quant = model_of(kind)
    file_target, file_quant = gguf_name(fields.get("model_filename", ""))
    backend = llama_cpp.runtime(fields.get("backends", ""), layers)
    chip = fields.get("cpu_info" if backend.endswith("(CPU)") else "gpu_info", "")
    build = f"build {fields.get('build_commit', '')} ({fields.get('build_number', '')})"
    return Test(
        place=place,
        prompt_tokens=whole(fields["n_prompt"], f"{here}, n_prompt"),
        output_tokens=whole(fields["n_gen"], f"{here}, n_gen"),
        depth_tokens=whole(fields.get("n_depth") or "0", f"{here}, n_depth"),
        tokens_per_s=rate(fields["avg_ts"], f"{here}, avg_ts")[0],
        stddev=optional(fields, "stddev_ts", here),
        time=fields.get("test_time", ""),
        described=frozenset() if file_target else frozenset({"target_model"}),
        about={
            "chip": chip_name(chip),
            "runtime": backend,
            "runtime_version": build if fields.get("build_commit") else "",
            "target_model": file_target or target,
            "target_params_b": gigas(optional(fields, "model_n_params", here)),
            "quant": quant or file_quant,
            "model_bytes_gb": gigas(optional(fields, "model_size", here)),
            "notes": "; ".join(part for part in (kind, unusual(fields)) if part),
        },
    )


def markdown_tests(text: str, where: str) -> Iterator[Test]:
    """The tests of Markdown tables; chip, file and build stand around them, where they do."""
    calls, chip = commands(text, llama_cpp.CALLS), llama_cpp.logged_chip(text)
    builds = {found.group(0): found for found in BUILD.finditer(text)}
    build = next(iter(builds.values())) if len(builds) == 1 else None
    for number, cells in markdown_rows(text, where, MARKDOWN):
        here = f"{where}, line {number}"
        named = TEST.fullmatch(cells["test"])
        if named is None or not (named[1] or named[2]):
            wrong = "is no test of llama-bench"
            raise InputError(f"{here}: {cells['test']!r}", wrong, "such as pp512 or tg128 @ d4096")
        fields = {DISPLAYED.get(name, name): cell for name, cell in cells.items()}
        target, quant = model_of(cells["model"])
        given = llama_cpp.model_cells(last_above(calls, number, NO_COMMAND))["target_model"]
        mean, stddev = rate(cells["t/s"], here)
        yield Test(
            place=f"line {number}",
            prompt_tokens=int(named[1] or 0),
            output_tokens=int(named[2] or 0),
            depth_tokens=int(named[3] or 0),
            tokens_per_s=mean,
            stddev=stddev,
            time="",
            described=frozenset() if given else frozenset({"target_model"}),
            about={
                "chip": chip,
                "runtime": llama_cpp.runtime(
                    cells.get("backend", ""), fields.get("n_gpu_layers", "")
                ),
                "runtime_version": f"build {build[1]} ({build[2]})" if build else "",
                "target_model": given or target,
                "target_params_b": gigas(scaled(cells["params"], here, COUNTS)),
                "quant": quant,
                "model_bytes_gb": gigas(scaled(cells["size"], here, SIZES)),
                "notes": "; ".join(part for part in (cells["model"], unusual(fields)) if part),
            },
        )


def model_of(kind: str) -> tuple[str, str]:
    """Architecture with size, and file type, of llama.cpp's model description.

    >>> model_of("qwen3moe 30B.A3B Q4_K - Medium"), model_of("llama4 17Bx16E (Scout) F16")
    (('qwen3moe 30B.A3B', 'Q4_K_M'), ('llama4 17Bx16E (Scout)', 'F16'))
    """
    parts = MODEL_TYPE.fullmatch(kind.strip().removesuffix(" (guessed)"))
    return (parts[1], file_type(parts[2])) if parts else (kind, "")


def optional(fields: Mapping[str, str], name: str, here: str) -> float | None:
    """A number that older versions may not write."""
    return plain_number(fields[name], f"{here}, {name}") if fields.get(name) else None


def gigas(value: float | None) -> str:
    """A count in units of 1e9 as a cell."""
    return "" if value is None else written(value / GB)


def unusual(fields: Mapping[str, str]) -> str:
    """The settings that are not the usual ones, in words."""
    return ", ".join(
        f"{name} {fields[name]}"
        for name, usual in USUAL.items()
        if fields.get(name) and fields[name] not in usual
    )
