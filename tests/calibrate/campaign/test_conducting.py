from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import tokroof
from calibrate.campaign.agenda import Agenda, drifts, planned_key, recorded_key
from calibrate.campaign.plan import PLAIN, PlannedRun
from calibrate.campaign.shelf import Shelf, check_format
from calibrate.commands.run_grid import (
    GUESSED_RUN_S,
    OVERHEAD_S,
    WAIT_SHARE,
    closing,
    conduct,
    report,
)
from calibrate.host_witness import HostWitness
from calibrate.networks import Network
from calibrate.progress import Lines
from calibrate.run_file import append_run, read_runs
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


FOUR = tuple(replace(planned(), made_before=each, agreement=0.05) for each in range(4))
"""Four makes of one run, and the reference that every network ends with."""
WITH_REFERENCE = (*FOUR, FOUR[0])


def lasting(*milliseconds: float) -> list[Run]:
    return [made(PLANNED[0], round_s=(each / 1000,) * 5) for each in milliseconds]


ELSEWHERE = replace(lasting(100)[0], environment=replace(ENVIRONMENT, chip="Apple M4"))
AGREEING = """
about = "four makes and the reference"

[[stages]]
targets = ["smollm2-135m"]
formats = ["4bit"]
contexts = [64]
repeats = 4
agreement = 0.05
"""


class TestRepeatsThatAgree:
    """A run is made twice, and again until its two fastest makes agree within 5 %."""

    def made_of(self, output: Path, *milliseconds: float) -> tuple[int, Agenda]:
        """How many of the makes were made, where each would last as long as is planted."""
        todo = agenda(read_runs(output) if output.exists() else (), FOUR)
        times = iter(lasting(*milliseconds))
        conduct(todo, output, lambda _: next(times), Lines(StringIO()))
        return len(read_runs(output)), todo

    @pytest.mark.parametrize(
        ("milliseconds", "number"),
        [
            ((100, 104), 2),
            ((104, 100), 2),
            ((100, 106, 104), 3),
            ((150, 106, 104), 3),
            ((100, 106, 112, 118), 4),
            ((106, 100, 94, 88), 4),
        ],
    )
    def test_the_two_fastest_decide(
        self, tmp_path: Path, milliseconds: tuple[float, ...], number: int
    ) -> None:
        count, todo = self.made_of(tmp_path / "runs.jsonl", *milliseconds)
        assert count == number
        assert todo.needless == 4 - number

    def test_without_an_agreement_all_are_made(self) -> None:
        always = [replace(each, agreement=0.0) for each in FOUR]
        assert agenda(lasting(100, 100), always).left == always[2:]

    def test_the_reference_at_the_end_is_always_made(self) -> None:
        todo = agenda(lasting(100, 100), WITH_REFERENCE)
        assert todo.left == [FOUR[0]]
        assert todo.needless == 2
        assert todo.leave_out(todo.left[0]) is None
        assert agenda(lasting(100, 100, 100), WITH_REFERENCE).left == []

    def test_a_later_process_decides_as_the_earlier_one_would_have(self, tmp_path: Path) -> None:
        output = tmp_path / "runs.jsonl"
        append_run(output, lasting(100)[0])
        assert self.made_of(output, 120, 103)[0] == 3
        assert self.made_of(output)[0] == 3

    def test_records_of_another_machine_do_not_decide(self) -> None:
        elsewhere = [
            replace(run, environment=replace(ENVIRONMENT, chip="Apple M4"))
            for run in lasting(100, 100)
        ]
        assert agenda(elsewhere, FOUR).left == list(FOUR)

    def test_other_makes_between_do_not_count(self) -> None:
        canvas = [replace(planned(CANVAS), made_before=each, agreement=0.05) for each in range(3)]
        todo = agenda([*lasting(100, 150), made(PLANNED[1]), made(PLANNED[1])], [*FOUR, *canvas])
        assert todo.left == list(FOUR[2:])
        assert todo.needless == 1

    def test_what_is_left_out_is_said_and_counted(self, tmp_path: Path) -> None:
        log, output = StringIO(), tmp_path / "runs.jsonl"
        todo, times = agenda((), WITH_REFERENCE), iter(lasting(100, 104, 102))
        conduct(todo, output, lambda _: next(times), Lines(log))
        assert "up to 5 runs to do" in log.getvalue()
        said = "[3/5] smollm2-135m 4bit at 64: plain: left out, its two fastest agree within 4.0%"
        assert said in log.getvalue()
        shown = report(read_runs(output), WITH_REFERENCE, todo.needless, 0, output)
        assert shown.startswith(f"3 of 3 runs are in {output}, 0 could not be made; 2 left out")

    @pytest.mark.parametrize(
        ("before", "said"),
        [
            (lasting(*[100] * 3), "3 of 3 runs are in {}, 0 could not be made; 2 left out, for"),
            (lasting(*[100] * 4), "4 of 4 runs are in {}, 0 could not be made; 1 left out, for"),
            (lasting(*[100] * 5), "5 of 5 runs are in {}, 0 could not be made\n"),
            (lasting(*[100] * 7), "5 of 5 runs are in {}, 0 could not be made\n"),
            ([*lasting(*[100] * 3), ELSEWHERE], "3 of 3 runs are in {}, 0 could not be made; 2"),
        ],
    )
    def test_makes_from_before_the_agreement_are_counted_as_made(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        before: list[Run],
        said: str,
    ) -> None:
        monkeypatch.setattr("calibrate.commands.run_grid.read_environment", lambda: ENVIRONMENT)
        plan, output = tmp_path / "plan.toml", tmp_path / "runs.jsonl"
        plan.write_text(AGREEING)
        for run in before:
            append_run(output, run)
        assert tokroof.main(["run", "grid", str(plan), "--output", str(output)]) == 0
        assert capsys.readouterr().out.startswith(said.format(output))

    def test_time_that_is_up_leaves_no_run_that_is_of_no_use(self, tmp_path: Path) -> None:
        log, output = StringIO(), tmp_path / "runs.jsonl"
        ticks, times = iter([0.0, 1.0, 2.0, 11.0]), iter(lasting(100, 104))
        todo = agenda((), WITH_REFERENCE)
        tell = Lines(log, clock=lambda: 0.0)
        conduct(todo, output, lambda _: next(times), tell, limit_s=10.0, clock=lambda: next(ticks))
        assert "time is up: 1 runs are left" in log.getvalue()


def beside(work_s: float, *milliseconds: float) -> list[Run]:
    """Makes before and after which the host's own work took so long."""
    return [replace(run, host_work_s=(work_s, work_s)) for run in lasting(*milliseconds)]


QUIET = made(PLANNED[2], host_work_s=(1e-3, 1.2e-3))
"""Another run, which tells how fast the host can be."""


class TestSlowHost:
    """Makes beside a host at less than two thirds of its speed do not count as agreeing."""

    @pytest.mark.parametrize(("work_s", "left"), [(1e-3, 0), (1.4e-3, 0), (1.6e-3, 2), (5e-3, 2)])
    def test_makes_beside_it_do_not_agree(self, work_s: float, left: int) -> None:
        todo = agenda([QUIET, *beside(work_s, 100, 100)], FOUR)
        assert todo.left == list(FOUR[4 - left :])
        assert todo.needless == 2 - left

    def test_one_slow_side_is_enough(self) -> None:
        before, after = (
            replace(lasting(100)[0], host_work_s=s) for s in ((2e-3, 1e-3), (1e-3, 2e-3))
        )
        assert agenda([QUIET, before, after], FOUR).left == list(FOUR[2:])

    def test_a_quiet_make_agrees_with_quiet_ones_alone(self) -> None:
        slow, quiet = beside(2e-3, 100, 100), beside(1e-3, 100)
        assert agenda([*slow, *quiet], FOUR).left == [FOUR[3]]
        assert agenda([*beside(2e-3, 100), *quiet * 2], FOUR).needless == 1

    def test_a_host_that_is_always_slow_is_as_fast_as_it_can_be(self) -> None:
        assert agenda(beside(5e-3, 100, 100), FOUR).left == []

    def test_makes_whose_host_was_not_timed_count(self) -> None:
        assert agenda([QUIET, *lasting(100, 100)], FOUR).left == []

    def test_the_host_of_another_machine_is_no_yardstick(self) -> None:
        elsewhere = replace(QUIET, environment=ELSEWHERE.environment)
        assert agenda([elsewhere, *beside(2e-3, 100, 100)], FOUR).left == []

    def test_a_faster_host_later_on_unmakes_an_agreement(self) -> None:
        todo = agenda((), FOUR)
        for run in beside(2e-3, 100, 100):
            todo.add(run)
        assert todo.leave_out(FOUR[2]) == 0.0
        todo.add(QUIET)
        assert todo.leave_out(FOUR[2]) is None

    def test_the_report_says_how_many_there_are(self) -> None:
        slow = "{} of these were made beside a host slower than it can be\n"
        for runs, number in (
            ([QUIET, *beside(2e-3, 100, 100)], 2),
            ([QUIET, *beside(2e-3, 100), *beside(1e-3, 100), *lasting(100)], 1),
        ):
            assert slow.format(number) in report(runs, PLANNED, 0, 0, Path("runs.jsonl"))
        undisturbed = [QUIET, *beside(1.4e-3, 100, 100), *lasting(100)]
        assert "slower" not in report(undisturbed, PLANNED, 0, 0, Path("runs.jsonl"))


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


def test_makes_beside_a_slow_host_tell_no_drift() -> None:
    first, slow, last = (
        made(PLANNED[0], round_s=(round_s,) * 5, host_work_s=(1e-3, work_s))
        for round_s, work_s in ((0.2, 1e-3), (0.4, 2e-3), (0.22, 1e-3))
    )
    for runs in ([first, slow, last], [slow, first, last], [first, last, slow]):
        ((_, drift),) = drifts(runs)
        assert drift == pytest.approx(0.1)
    assert drifts([first, slow]) == []


@pytest.mark.parametrize(
    ("before", "known_s", "left"),
    [
        ([], math.inf, 5),
        (lasting(100), math.inf, 4),
        ([QUIET, *beside(2e-3, 100)], 1e-3, 4),
        ([replace(QUIET, environment=ELSEWHERE.environment), *beside(2e-3, 100)], 2e-3, 4),
        (beside(2e-3, *[100] * 5), 2e-3, 0),
    ],
    ids=["none", "untimed", "another-plan", "another-machine", "all"],
)
def test_a_grid_knows_its_host_from_records_and_waits_for_a_share_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[Run], known_s: float, left: int
) -> None:
    given: dict[str, Any] = {}

    def witness(**settings: Any) -> HostWitness:
        given.update(settings)
        return HostWitness(lambda: 1.0)

    here = "calibrate.commands.run_grid"
    monkeypatch.setattr(f"{here}.HostWitness", witness)
    monkeypatch.setattr(f"{here}.read_environment", lambda: ENVIRONMENT)
    monkeypatch.setattr(f"{here}.conduct", lambda *_, **__: [])  # pyright: ignore
    plan, output = tmp_path / "plan.toml", tmp_path / "runs.jsonl"
    plan.write_text(AGREEING)
    for run in before:
        append_run(output, run)
    assert tokroof.main(["run", "grid", str(plan), "--output", str(output)]) == 0
    assert given["known_s"] == known_s
    assert given["budget_s"] == WAIT_SHARE * left * (OVERHEAD_S + GUESSED_RUN_S)
    assert callable(given["say"])


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
