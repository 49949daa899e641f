from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.published.read_runs import read_runs
from calibrate.published.run_row import COLUMNS, PublishedRun, run_from_cells
from calibrate.published.write_runs import append_runs, cells_of, text_of, write_runs
from model.errors import InputError

RUN = run_from_cells(
    {
        "id": "a",
        "chip": "M3 Max",
        "memory_gb": "64",
        "runtime": "mlx-lm",
        "target_model": 'Walrus, the "9B"',
        "target_params_b": "9.03",
        "quant": "4bit",
        "model_bytes_gb": "5.07",
        "strategy": "speculative",
        "k": "3",
        "acceptance": "0.8;0.7",
        "context_tokens": "4096",
        "decode_tok_s": "50.25",
        "notes": "two\nlines — and a dash",
    },
    "a test",
)
OTHER = replace(RUN, id="b")


@pytest.mark.parametrize("name", ["runs.csv", "runs.jsonl"])
def test_what_is_written_is_read_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / "new" / name
    write_runs((RUN, OTHER), path)
    assert read_runs(path) == (RUN, OTHER)
    assert [each.name for each in path.parent.iterdir()] == [name]


def test_the_columns_are_those_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    write_runs((RUN,), path)
    with path.open(newline="", encoding="utf-8") as file:
        assert next(csv.reader(file)) == list(COLUMNS)
    assert ",64," in path.read_text(encoding="utf-8")


quantities = st.none() | st.floats(min_value=0, max_value=1e6).map(lambda x: float(f"{x:.9g}"))


@given(quantities, quantities, quantities)
def test_units_survive_the_way_there_and_back(
    size: float | None, memory: float | None, speed: float | None
) -> None:
    cells = {"model_bytes_gb": size, "memory_gb": memory, "decode_tok_s": speed}
    stated = {name: "" if value is None else str(value) for name, value in cells.items()}
    run = run_from_cells({"id": "a", "strategy": "plain", **stated}, "a test")
    written = cells_of(run)
    assert {name: written[name] for name in cells} == cells
    again = {name: text_of(cell) for name, cell in written.items()}
    assert cells_of(run_from_cells(again, "a test")) == written


@pytest.mark.parametrize("name", ["runs.csv", "runs.jsonl"])
def test_appending_adds_what_is_new_and_leaves_the_rest(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_runs((RUN,), path)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    before = path.read_bytes()
    assert append_runs((RUN, OTHER), path) == (OTHER,)
    assert path.read_bytes().startswith(before + b"\n")
    assert read_runs(path) == (RUN, OTHER)
    after = path.read_bytes()
    assert append_runs((RUN, OTHER), path) == ()
    assert path.read_bytes() == after


def test_appending_keeps_the_order_of_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    cells = {name: text_of(cell) for name, cell in cells_of(RUN).items()}
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, COLUMNS[::-1])
        writer.writeheader()
        writer.writerow(cells)
    append_runs((OTHER,), path)
    assert read_runs(path) == (RUN, OTHER)


def test_other_columns_are_not_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("id,chip,runtime,target_model,quant,strategy,mood\na,M3,mlx,w,4bit,plain,ok\n")
    before = path.read_bytes()
    with pytest.raises(InputError, match="has other columns"):
        append_runs((RUN,), path)
    assert path.read_bytes() == before


def test_a_name_must_say_the_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither \.csv nor \.jsonl"):
        write_runs((RUN,), tmp_path / "runs.txt")


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_runs((RUN,), tmp_path / "file" / "runs.csv")


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.csv"
    write_runs((RUN,), path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match="no space left"):
        write_runs((RUN, OTHER), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_every_field_of_a_run_has_its_column() -> None:
    assert len(PublishedRun.__dataclass_fields__) == len(COLUMNS)
    assert json.loads(json.dumps(cells_of(RUN)))["k"] == 3
