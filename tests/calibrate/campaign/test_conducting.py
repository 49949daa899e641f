from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from calibrate.campaign.agenda import Agenda, drifts, planned_key, recorded_key
from calibrate.campaign.plan import PLAIN, PlannedRun
from calibrate.campaign.shelf import Shelf, check_format
from calibrate.commands.run_grid import (
    closing,
    conduct,
    report,
)
from calibrate.networks import Network
from calibrate.progress import Lines
from calibrate.run_file import read_runs
from calibrate.run_record import Run
from calibrate.run_settings import Settings
from model.errors import InputError
from tests.calibrate.test_run_record import ENVIRONMENT
from tests.calibrate.test_run_record import PLAIN as RECORD

CANVAS = Settings(strategy="canvas", canvas=8)


def planned(settings: Settings = PLAIN, context: int = 64) -> PlannedRun:
    return PlannedRun(
        target="smollm2-135m",
        format_name="4bit",
        weights="random",
        context=context,
        settings=settings,
        tokens=3,
        limit_s=1.0,
    )


def made(run: PlannedRun, **changes: Any) -> Run:
    return replace(
        RECORD,
        target=run.target,
        target_format=run.format_name,
        context_tokens=run.context,
        **asdict(run.recorded),
        **changes,
    )


PLANNED = (planned(), planned(CANVAS), planned(context=128), planned())


def agenda(finished: Iterable[Run] = (), plan: Sequence[PlannedRun] = PLANNED) -> Agenda:
    return Agenda(plan, finished, ENVIRONMENT)


class TestAgenda:
    def test_each_record_stands_for_one_run(self) -> None:
        assert agenda().left == list(PLANNED)
        once = [made(PLANNED[0])]
        assert agenda(once).left == list(PLANNED[1:])
        assert agenda(once * 2).left == list(PLANNED[1:3])
        assert agenda([made(each) for each in PLANNED]).left == []

    def test_records_of_another_machine_stand_for_nothing(self) -> None:
        elsewhere = replace(ENVIRONMENT, chip="Apple M4")
        assert len(Agenda(PLANNED, [made(PLANNED[0])], elsewhere).left) == 4

    def test_the_key_of_a_record_is_that_of_its_plan(self) -> None:
        for each in PLANNED:
            assert recorded_key(made(each)) == planned_key(each)


class TestConduct:
    log: StringIO

    def lines(self) -> Lines:
        self.log = StringIO()
        return Lines(self.log)

    def said(self) -> str:
        return self.log.getvalue()

    def test_every_run_is_on_the_disk_before_the_next(self, tmp_path: Path) -> None:
        output = tmp_path / "runs.jsonl"
        seen: list[int] = []

        def make(run: PlannedRun) -> Run:
            seen.append(len(read_runs(output)) if output.exists() else 0)
            return made(run)

        assert conduct(agenda(), output, make, self.lines()) == []
        assert seen == [0, 1, 2, 3]
        assert len(read_runs(output)) == 4

    def test_an_interruption_keeps_what_was_finished(self, tmp_path: Path) -> None:
        output = tmp_path / "runs.jsonl"

        def make(run: PlannedRun) -> Run:
            if run == PLANNED[2]:
                raise KeyboardInterrupt
            return made(run)

        with pytest.raises(KeyboardInterrupt):
            conduct(agenda(), output, make, self.lines())
        assert "holds every finished run" in self.said()
        assert agenda(read_runs(output)).left == list(PLANNED[2:])
        conduct(agenda(read_runs(output)), output, made, self.lines())
        assert agenda(read_runs(output)).left == []

    def test_a_run_that_cannot_be_made_is_said_and_passed_over(self, tmp_path: Path) -> None:
        output = tmp_path / "runs.jsonl"

        def make(run: PlannedRun) -> Run:
            if run.settings.canvas:
                raise InputError("canvas", "does not fit", "give a smaller one")
            if run.context == 128:
                raise RuntimeError("[malloc] out of memory\nat this place")
            return made(run)

        assert conduct(agenda(), output, make, self.lines()) == [
            "does not fit",
            "[malloc] out of memory",
        ]
        assert len(read_runs(output)) == 2
        assert "canvas canvas=8: canvas: does not fit" in self.said()
        assert "[malloc] out of memory\n" in self.said()

    def test_no_run_begins_when_time_is_up(self, tmp_path: Path) -> None:
        output = tmp_path / "runs.jsonl"
        ticks = iter([0.0, 1.0, 6.0, 11.0])
        lines = self.lines()
        conduct(agenda(), output, made, lines, limit_s=10.0, clock=lambda: next(ticks))
        assert len(read_runs(output)) == 2
        assert "time is up: 2 runs are left" in self.said()

    def test_an_output_that_cannot_be_written_ends_it(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot be written"):
            conduct(agenda(), tmp_path, made, self.lines())


def test_the_drift_is_the_last_repeat_over_the_first() -> None:
    first = made(PLANNED[0], round_s=(0.2,) * 5)
    last = made(PLANNED[0], round_s=(0.22,) * 5)
    ((name, drift),) = drifts([first, made(PLANNED[1]), last])
    assert name == "smollm2-135m 4bit at 64"
    assert drift == pytest.approx(0.1)
    assert drifts([first]) == []
    shown = report([first, last], PLANNED, 0, 1, Path("runs.jsonl"))
    assert "2 of 4 runs are in runs.jsonl, 1 could not be made" in shown
    assert "drifted: smollm2-135m 4bit at 64 +10.0%" in shown


def test_the_last_line_counts_what_could_not_be_made_by_reason() -> None:
    assert closing(["is lost"]) == "1 run could not be made: 1 x is lost"
    assert closing(["is lost", "is big", "is big"]) == (
        "3 runs could not be made: 2 x is big; 1 x is lost"
    )
    many = closing(["a", "a", "b", "c", "d", "e"])
    assert many == "6 runs could not be made: 2 x a; 1 x b; 1 x c; 2 more reasons above"


def test_real_weights_in_another_format_are_not_taken_for_what_was_planned() -> None:
    stored = Network(
        model=None,
        name="mine",
        weights="real",
        format_name="8bit",
        vocab_size=1,
        total_bytes=1,
        tokenizer=None,
    )
    with pytest.raises(InputError, match="smollm2-135m in 4bit: has its weights in 8bit; plan"):
        check_format(planned().network, stored)
    check_format(replace(planned(), format_name="8bit").network, stored)


class TestShelf:
    def shelf(self, *rooms: float) -> tuple[Shelf, list[str]]:
        opened: list[str] = []
        room = iter(rooms)

        def opener(target: str, format_name: str, weights: str) -> Network:
            opened.append(f"{target} {format_name}")
            return Network(
                model=None,
                name=target,
                weights=weights,
                format_name=format_name,
                vocab_size=1,
                total_bytes=1,
                tokenizer=None,
            )

        return Shelf(opener, lambda: int(next(room))), opened

    def test_what_is_held_is_not_opened_again(self) -> None:
        shelf, opened = self.shelf(1e12, 1e12)
        one, two = ("smollm2-135m", "4bit", "random"), ("smollm2-360m", "4bit", "random")
        first = shelf.bring((one,), 0)
        assert shelf.bring((one, two), 0)[0] is first[0]
        assert shelf.bring((two,), 0)[0].name == "smollm2-360m"
        assert opened == ["smollm2-135m 4bit", "smollm2-360m 4bit"]

    def test_others_go_first_where_there_is_no_room(self) -> None:
        one, two = ("smollm2-135m", "4bit", "random"), ("smollm2-360m", "4bit", "random")
        shelf, opened = self.shelf(1e6)
        shelf.bring((one,), 0)
        shelf.bring((two,), 0)
        shelf.bring((two,), 0)
        assert shelf.bring((two,), 0)[0].name == "smollm2-360m"
        assert opened == ["smollm2-135m 4bit", "smollm2-360m 4bit"]
        shelf, opened = self.shelf(1e6, 1e6)
        for spec in (one, two, one):
            shelf.bring((spec,), 0)
        assert opened == ["smollm2-135m 4bit", "smollm2-360m 4bit", "smollm2-135m 4bit"]
