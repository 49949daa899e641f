"""When a run is made again: until two makes beside an undisturbed host agree."""

from __future__ import annotations

import math
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import tokroof
from calibrate.campaign.agenda import Agenda, drifts
from calibrate.commands.run_grid import (
    GUESSED_RUN_S,
    OVERHEAD_S,
    WAIT_SHARE,
    conduct,
    report,
)
from calibrate.host_witness import HostWitness
from calibrate.progress import Lines
from calibrate.run_file import append_run, read_runs
from calibrate.run_record import Run
from tests.calibrate.campaign.test_conducting import CANVAS, PLANNED, agenda, made, planned
from tests.calibrate.test_run_record import ENVIRONMENT

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
