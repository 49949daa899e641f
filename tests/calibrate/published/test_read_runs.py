"""Tables of runs: what is wrong with one is said by row and column, in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrate.published.read_runs import each_run, read_runs
from model.errors import InputError

HEADER = "id,chip,runtime,target_model,quant,strategy,decode_tok_s,k"
ROW = "R1,M3,mlx-lm,llama-3.1-8b,4bit,plain,18.5,"


def table(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "runs.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_table_is_read_with_its_columns_in_any_order(tmp_path: Path) -> None:
    lines = "\ufeffdecode_tok_s,extra,strategy,quant,target_model,runtime,chip,id\n"
    lines += '18.5,x,plain,4bit,"a, b",mlx-lm,M3,R1\n\n'
    (run,) = read_runs(table(tmp_path, lines))
    assert (run.id, run.target, run.decode_tokens_per_s) == ("R1", "a, b", 18.5)
    assert (run.batch, run.draft_length, run.trust) == (1, None, "medium")


def test_json_lines_hold_the_same_columns(tmp_path: Path) -> None:
    cells = dict(zip(HEADER.split(","), ROW.split(","), strict=True))
    as_json = {**cells, "decode_tok_s": 18.5, "k": None}
    (of_json,) = read_runs(table(tmp_path, json.dumps(as_json) + "\n"))
    (of_csv,) = read_runs(table(tmp_path, f"{HEADER}\n{ROW}\n"))
    assert of_json == of_csv


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "runs.csv: is empty"),
        (HEADER, "runs.csv: has no rows"),
        (HEADER.replace("quant,", ""), "row 1: has no column quant"),
        (HEADER + ",id\n", "row 1: has column 'id' twice"),
        (f"{HEADER}\n{ROW.replace('18.5', 'fast')}", "row 2, column decode_tok_s: 'fast': is not"),
        (f"{HEADER}\n{ROW.replace('18.5', '18.5 tok/s')}", "give digits alone, no unit"),
        (f"{HEADER}\n{ROW.replace('18.5', '-1')}", "column decode_tok_s: '-1': is not possible"),
        (f"{HEADER}\n{ROW.replace('18.5', 'nan')}", "column decode_tok_s: 'nan': is not possible"),
        (f"{HEADER}\n{ROW}2.5", "row 2, column k: 2.5: is not a whole number"),
        (f"{HEADER}\n{ROW},more", "row 2: has 9 cells, more than the 8 columns"),
        (f"{HEADER}\nR1,M3", "row 2: has 2 cells, fewer than the 8 columns"),
        (f"{HEADER}\n{ROW}\n{ROW}", "row 3, column id: 'R1': is there twice"),
        (f"{HEADER}\n{ROW.replace('R1', '')}", "row 2, column id: is empty"),
        (HEADER.encode() + b"\n\xff\xfe", "runs.csv: is not UTF-8"),
        (f'{HEADER}\n"{"x" * 1_000_001}"', "is not CSV (field larger than field limit"),
        ('{"id": "R1"', "row 1: is not JSON"),
        ('{"id": "R1"}', "row 1: has no column chip"),
        ("{" + '"a":' * 2000 + "{" * 2000, "row 1: is not JSON"),
    ],
)
def test_a_bad_table_is_one_line(tmp_path: Path, text: str | bytes, line: str) -> None:
    with pytest.raises(InputError) as refusal:
        read_runs(table(tmp_path, text))
    assert line in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_cell_of_json_is_no_list(tmp_path: Path) -> None:
    cells: dict[str, object] = dict(zip(HEADER.split(","), ROW.split(","), strict=True))
    cells["quant"] = ["4bit"]
    with pytest.raises(InputError, match="row 1, column quant: is a list or an object"):
        read_runs(table(tmp_path, json.dumps(cells)))


def test_rows_come_one_by_one(tmp_path: Path) -> None:
    """What is wrong further down does not keep the first rows back, nor the file in memory."""
    rows = each_run(table(tmp_path, f"{HEADER}\n{ROW}\nbroken"))
    assert next(rows).id == "R1"
    with pytest.raises(InputError, match="row 3"):
        next(rows)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.csv: cannot be read \(no such file"):
        read_runs(tmp_path / "nowhere.csv")
