"""llama-batched-bench: its table and its JSON lines.

Each row decodes B sequences side by side, TG tokens each, after PP prompt tokens each; S_TG is the
rate of all of them together. So a row is a run of strategy "batch" whose context is PP, and with
B = 1 a plain one. With `-tgs` the sequences are decoded one after the other, and a row is plain
whatever its B. The tool names neither model nor chip: a command line and a log around the table
may.

Learnt from llama.cpp's tools/batched-bench/batched-bench.cpp and the tables in its benches folder.
The table of llama-sweep-bench looks alike but has no B, and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from calibrate.imports import llama_cpp
from calibrate.imports.cells import rate, whole, written
from calibrate.imports.documents import (
    first_line,
    header_line,
    json_objects,
    last_above,
    markdown_rows,
)
from calibrate.imports.found import Found, Row
from calibrate.imports.shell import NO_COMMAND, Command, commands
from model.errors import InputError

NAME = "llama-batched-bench"
TABLE = ("PP", "TG", "B", "S_PP t/s", "S_TG t/s")
JSON_SIGN = re.compile(r'"speed_tg"\s*:')
FIELDS = {"pp": "PP", "tg": "TG", "pl": "B", "speed_pp": "S_PP t/s", "speed_tg": "S_TG t/s"}
SETTINGS = re.compile(r"\b(?:main|llama_batched_bench): (n_kv_max = .+)")
SETTING = re.compile(r"(\w+) = (-?\d+)")
NOTED = ("flash_attn", "is_pp_shared", "is_tg_separate", "n_gpu_layers")


def recognises(text: str) -> int:
    """The first line that shows it, or 0."""
    return header_line(text, TABLE, "|") or first_line(JSON_SIGN, text)


def read(text: str, where: str) -> Found:
    """The rows of a text.

    Raises:
        InputError: a row is cut off or holds what is no number.
    """
    rows = [*table_rows(text, where), *json_rows(text, where)]
    return Found(rows=tuple(rows))


def table_rows(text: str, where: str) -> Iterator[Row]:
    """The rows of the tables, with the settings line and the command above each."""
    calls, chip = commands(text, llama_cpp.CALLS), llama_cpp.logged_chip(text)
    settings: list[tuple[int, Mapping[str, str]]] = [
        (number, dict(SETTING.findall(found[1])))
        for number, line in enumerate(text.split("\n"), start=1)
        if (found := SETTINGS.search(line))
    ]
    for number, cells in markdown_rows(text, where, TABLE):
        stated = last_above(settings, number, {})
        call = last_above(calls, number, NO_COMMAND)
        yield row(cells, stated, f"line {number}", where, call=call, chip=chip)


def json_rows(text: str, where: str) -> Iterator[Row]:
    """The rows of JSON lines, each with its settings."""
    if JSON_SIGN.search(text):
        chip = llama_cpp.logged_chip(text)
        for place, fields in json_objects(text, where):
            stated = {name: str(value) for name, value in fields.items()}
            for name in FIELDS:
                if name not in stated:
                    right = "give the whole output of llama-batched-bench"
                    raise InputError(f"{where}, {place}", f"has no {name}", right)
            cells = {column: stated[name] for name, column in FIELDS.items()}
            yield row(cells, stated, place, where, call=NO_COMMAND, chip=chip)


def row(
    cells: Mapping[str, str],
    settings: Mapping[str, str],
    place: str,
    where: str,
    *,
    call: Command,
    chip: str,
) -> Row:
    """One row from its cells by the table's column names."""
    here = f"{where}, {place}"
    prompt, output, sequences = (whole(cells[name], f"{here}, {name}") for name in TABLE[:3])
    separate = settings.get("is_tg_separate") == "1"
    batch = 1 if separate else max(sequences, 1)
    notes = [f"PP {prompt}, TG {output}, B {sequences}"]
    notes += [f"{name} {settings[name]}" for name in NOTED if name in settings]
    if separate:
        notes.append("sequences decoded one after the other")
    stated = {
        "chip": chip,
        "runtime": llama_cpp.runtime("", settings.get("n_gpu_layers", "")),
        **llama_cpp.model_cells(call),
        "strategy": "batch" if batch > 1 else "plain",
        "batch": str(batch),
        "context_tokens": str(prompt),
        "decode_tok_s": written(rate(cells["S_TG t/s"], f"{here}, S_TG t/s")[0]),
        "task": "llama-batched-bench synthetic",
        "notes": ", ".join(notes),
    }
    if prompt:
        stated["prefill_tok_s"] = written(rate(cells["S_PP t/s"], f"{here}, S_PP t/s")[0])
    return Row(place=place, cells=stated, stamp=f"{prompt} {output} {sequences}")
