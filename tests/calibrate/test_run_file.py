"""Files of runs: appended, read back, and refused with the file, line and field at fault."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from calibrate.run_file import append_run, read_runs
from model.errors import InputError
from tests.calibrate.test_run_record import PLAIN, SPECULATIVE


def test_a_file_from_before_the_later_fields_is_read(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    record = json.loads(json.dumps(asdict(SPECULATIVE)))
    for name in ("skipped_attention", "skipped_mlp", "ngram", "batch", "canvas"):
        del record[name]
    for name in ("forced_acceptance", "seed", "proposed", "context_filled", "commits", "library"):
        del record[name]
    for name in ("block", "steps", "committed", "threshold"):
        del record[name]
    del record["host_work_s"], record["distinct_experts"]
    file.write_text(json.dumps(record))
    assert read_runs(file) == (SPECULATIVE,)


class TestFile:
    def test_appended_runs_come_back_in_order(self, tmp_path: Path) -> None:
        file = tmp_path / "runs.jsonl"
        witnessed = replace(PLAIN, host_work_s=(0.001, 0.0011))
        runs = (SPECULATIVE, PLAIN, replace(PLAIN, id="b", matches_plain=True), witnessed)
        for run in runs:
            append_run(file, run)
        assert read_runs(file) == runs
        assert file.read_text().count("\n") == 4

    def test_a_run_that_was_cut_off_is_named_and_spoils_no_other(self, tmp_path: Path) -> None:
        file = tmp_path / "runs.jsonl"
        append_run(file, PLAIN)
        file.write_bytes(file.read_bytes() + b'{"id": "b", "da')
        with pytest.raises(InputError, match=r"runs.jsonl:2: is not whole JSON"):
            read_runs(file)
        append_run(file, SPECULATIVE)
        lines = file.read_text().splitlines()
        assert len(lines) == 3
        file.write_text("\n".join([lines[0], lines[2]]))
        assert read_runs(file) == (PLAIN, SPECULATIVE)

    def test_an_infinite_time_is_never_written(self, tmp_path: Path) -> None:
        file = tmp_path / "runs.jsonl"
        with pytest.raises(ValueError, match="JSON"):
            append_run(file, replace(PLAIN, round_s=(float("inf"),) * 5))
        assert not file.exists()

    @pytest.mark.parametrize("name", ["", "missing/runs.jsonl"])
    def test_what_cannot_be_opened_is_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(InputError, match="cannot be written"):
            append_run(tmp_path / name, PLAIN)
        with pytest.raises(InputError, match="cannot be read"):
            read_runs(tmp_path / name)

    def test_bytes_that_are_no_text_are_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "runs.jsonl"
        file.write_bytes(b"\xff\xfe")
        with pytest.raises(InputError, match="it is not text"):
            read_runs(file)

    def test_no_space_left_is_one_line_that_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "runs.jsonl"
        append_run(file, PLAIN)

        def refuse(*_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("os.write", refuse)
        with pytest.raises(InputError, match=r"No space left on device.; free some space"):
            append_run(file, SPECULATIVE)
        assert read_runs(file) == (PLAIN,)

    def test_a_full_disk_leaves_the_file_as_it_was(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "runs.jsonl"
        append_run(file, PLAIN)
        before = file.read_bytes()
        write: Callable[[int, bytes], int] = __import__("os").write
        monkeypatch.setattr("os.write", lambda to, line: write(to, line[:20]))  # pyright: ignore
        with pytest.raises(InputError, match="the disk is full"):
            append_run(file, SPECULATIVE)
        assert file.read_bytes() == before


def changed(**changes: Any) -> str:
    return json.dumps({**json.loads(json.dumps(asdict(PLAIN))), **changes})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "runs.jsonl:2: the record: is [1]; give an object with named fields"),
        (changed(tokens="many"), "runs.jsonl:2: tokens: is 'many'; give a whole number"),
        (changed(tokens=3.5), "runs.jsonl:2: tokens: is 3.5; give a whole number"),
        (changed(round_s=[0.1, "x", 0.1, 0.1, 0.1]), "round_s[1]: is 'x'; give a finite number"),
        (changed(round_s=[float("nan")] * 5), "runs.jsonl:2: holds NaN; give finite numbers"),
        (changed(environment={"chip": "M3"}), "runs.jsonl:2: environment.device: is missing"),
        (changed(colour="red"), "runs.jsonl:2: colour: is not a field"),
        (changed(strategy="medusa"), "run a: strategy 'medusa': is not known"),
        (changed(round_s=[0.1]), "accepted: has not one count per round"),
        (changed(round_s=[], accepted=[]), "round_s: has no round"),
        (changed(round_s=[0.1, 0.1, 0.1, 0.1, 0.0]), "round_s: has a time of 0 or less"),
        (changed(accepted=[0, 0, 1, 0, 0]), "accepted: has a count outside 0 to 0"),
        (changed(output=[1, 2]), "output: has not 3 tokens"),
        (changed(draft_length=2), "draft_length: is 2 of a plain run"),
        (changed(strategy="speculative"), "draft_length: is 0 of a speculative run"),
        (changed(strategy="speculative", draft_length=10**12), "draft_length: is 1000000000000"),
        (changed(batch=4), "plain: batch: is 4"),
        (changed(canvas=8), "plain: canvas: is 8"),
        (changed(strategy="canvas"), "canvas: is 0"),
        (changed(strategy="diffusion"), "diffusion: block: is 0"),
        (changed(block=8), "plain: block: is 8"),
        (changed(strategy="diffusion", block=8), "commits: has not one count per round"),
        (changed(strategy="diffusion", block=2, commits=[3] * 5), "a count outside 0 to 2"),
        (
            changed(strategy="diffusion", block=2, commits=[1] * 5, new_shapes=[True]),
            "new_shapes: says it not once per round",
        ),
        (changed(strategy="diffusion", block=8, steps=9), "steps: are 9 in a block of 8"),
        (changed(strategy="diffusion", block=8, committed=0.5), "committed: is 0.5"),
        (changed(strategy="diffusion", block=8, threshold=1.5), "threshold: is 1.5"),
        (changed(strategy="diffusion", block=8, steps=4, committed=2.0), "are more than one"),
        (changed(strategy="layer-skip", draft_length=2), "skipped layers: are [] and []"),
        (changed(strategy="prompt-lookup", draft_length=2), "ngram: is 0"),
        (changed(forced_acceptance=0.5), "plain: forced_acceptance: is 0.5"),
        (changed(proposed=[1] * 5), "proposed: has not one count per round of a draft"),
        (
            changed(strategy="prompt-lookup", draft_length=2, ngram=1, proposed=[1] * 5),
            "proposed: has a count that is neither 0 nor 2",
        ),
        (changed(host_work_s=[0.001, 0.0]), "host_work_s: has no time above 0"),
        (changed(host_work_s=[-0.001]), "host_work_s: has no time above 0"),
        (changed(distinct_experts=0.5), "distinct_experts: is below 1"),
        (changed(distinct_experts=-3.0), "distinct_experts: is below 1"),
        (changed(date="yesterday"), "date: is no date of ISO 8601"),
        (changed(context_tokens=-1), "context_tokens: is no length of a prompt"),
        ("[" * 100_000, "runs.jsonl:2: is not JSON that can be read"),
        ('{"tokens": ' + "9" * 6000 + "}", "runs.jsonl:2: is not JSON that can be read"),
    ],
)
def test_file_line_and_field_of_what_is_wrong_are_named(
    tmp_path: Path, line: str, said: str
) -> None:
    file = tmp_path / "runs.jsonl"
    append_run(file, PLAIN)
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(InputError) as caught:
        read_runs(file)
    assert str(caught.value).startswith(f"{file}:2: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
