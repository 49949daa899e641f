from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from calibrate import measure as measuring
from calibrate.environment import read_environment
from calibrate.host_witness import FIRST_TRIES, HostWitness
from calibrate.measure import MOST_VISITS, MOST_WAITED_S, measure, run_calibration
from calibrate.plan import plan
from calibrate.probe import Plan, Probe
from calibrate.progress import Lines, token_bar
from calibrate.samples import REFERENCE
from calibrate.session import Session, Speed
from calibrate.timing import Pace, Workload
from model.errors import InputError
from tests.calibrate.fake_device import FakeClock, FakeWorkload
from tests.calibrate.test_session import HEADER


def probe(name: str, rows: int, *, unit_s: float = 1e-3, memory_bytes: int = 0) -> Probe:
    return Probe(
        probe=name,
        settings=(("context", 64), ("rows", rows)),
        material="",
        unit_s=unit_s,
        make_s=0.0,
        memory_bytes=memory_bytes,
    )


PLAN = Plan(
    mode="quick",
    formats=("4bit",),
    probes=tuple(probe("attention", rows, unit_s=1e-3 * rows) for rows in range(1, 6)),
    reference=probe(REFERENCE, 1),
    reference_every=2,
    sweeps=2,
    pace=Pace(repetition_s=0.02, repeats=2, most_repeats=6, check_tries=3, limit_s=100.0),
    memory_bytes=1000,
)


class FakeWorkshop:
    """Every probe takes what its plan guesses; those named fail, or interrupt when it is time."""

    def __init__(
        self,
        *,
        failing: tuple[int, ...] = (),
        interrupted_at: int = 10**9,
        disturbed: Callable[[int], float] = lambda _: 0.0,
    ) -> None:
        self.clock = FakeClock()
        self.opened: list[tuple[str, int]] = []
        self._failing = failing
        self._interrupted_at = interrupted_at
        self._disturbed = disturbed

    def workload(self, probe: Probe) -> Workload:
        if len(self.opened) >= self._interrupted_at:
            raise KeyboardInterrupt
        rows = probe.number("rows")
        self.opened.append((probe.probe, rows))
        if probe.probe != REFERENCE and rows in self._failing:
            raise RuntimeError("[quantized_matmul] no kernel\nmore")
        return FakeWorkload(self.clock, unit_s=probe.unit_s, disturbed=self._disturbed)

    def clear(self) -> None:
        pass


def quiet_host() -> HostWitness:
    return HostWitness(lambda: 1.0)


def run(
    path: Path,
    workshop: FakeWorkshop,
    planned: Plan = PLAN,
    text: io.StringIO | None = None,
    host: HostWitness | None = None,
) -> Session:
    header = replace(HEADER, plan=planned.fingerprint)
    return measure(
        planned,
        header,
        path,
        Lines(io.StringIO() if text is None else text),
        workshop=workshop,
        clock=workshop.clock,
        host=host or quiet_host(),
    )


def seconds_by_rows(session: Session) -> dict[int, float]:
    return {s.number("rows"): s.seconds for s in session.samples if s.probe == "attention"}


def test_every_probe_is_visited_in_every_sweep(tmp_path: Path) -> None:
    workshop = FakeWorkshop()
    session = run(tmp_path / "s.jsonl", workshop)
    assert seconds_by_rows(session) == pytest.approx({rows: rows * 1e-3 for rows in range(1, 6)})
    visits = [rows for name, rows in workshop.opened if name == "attention"]
    assert visits == [1, 2, 3, 4, 5, 5, 4, 3, 2, 1]
    assert all(s.doubling == pytest.approx(2.0) for s in session.samples if s.probe != REFERENCE)


@pytest.mark.parametrize("interrupted_at", [1, 4, 9, 14])
def test_an_interrupted_run_resumes(tmp_path: Path, interrupted_at: int) -> None:
    path, text = tmp_path / "s.jsonl", io.StringIO()
    first, second = FakeWorkshop(interrupted_at=interrupted_at), FakeWorkshop()
    with pytest.raises(KeyboardInterrupt):
        run(path, first)
    session = run(path, second, text=text)
    assert "resumes" in text.getvalue()
    visits = [rows for name, rows in first.opened + second.opened if name == "attention"]
    assert visits == [1, 2, 3, 4, 5, 5, 4, 3, 2, 1]
    assert len(seconds_by_rows(session)) == 5


def test_an_interruption_says_what_is_kept_and_the_session_keeps_its_beginning(
    tmp_path: Path,
) -> None:
    path, text = tmp_path / "s.jsonl", io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        run(path, FakeWorkshop(interrupted_at=4), text=text)
    assert text.getvalue().endswith("4 visits are kept; the same command goes on from here\n")
    later = replace(HEADER, plan=PLAN.fingerprint, began=HEADER.began + 3600)
    workshop = FakeWorkshop()
    session = measure(
        PLAN,
        later,
        path,
        Lines(io.StringIO()),
        workshop=workshop,
        clock=workshop.clock,
        host=quiet_host(),
    )
    assert session.header.began == HEADER.began


def test_a_finished_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    path, again = tmp_path / "s.jsonl", FakeWorkshop()
    finished = run(path, FakeWorkshop())
    assert run(path, again).samples == finished.samples
    assert again.opened == []


def test_a_failing_probe_is_recorded_and_the_rest_goes_on(tmp_path: Path) -> None:
    workshop, text = FakeWorkshop(failing=(3,)), io.StringIO()
    session = run(tmp_path / "s.jsonl", workshop, text=text)
    assert sorted(seconds_by_rows(session)) == [1, 2, 4, 5]
    assert [line.reason for line in session.skipped] == [
        "RuntimeError: [quantized_matmul] no kernel"
    ]
    assert workshop.opened.count(("attention", 3)) == 1
    assert "rows=3: RuntimeError: [quantized_matmul] no kernel\n" in text.getvalue()


def test_what_does_not_fit_is_never_tried(tmp_path: Path) -> None:
    large = replace(PLAN, probes=(*PLAN.probes, probe("attention", 9, memory_bytes=2000)))
    workshop = FakeWorkshop()
    session = run(tmp_path / "s.jsonl", workshop, large)
    assert ("attention", 9) not in workshop.opened
    assert "memory" in str(session.skipped[0].reason)


def test_another_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    run(path, FakeWorkshop())
    with pytest.raises(InputError, match="another plan"):
        run(path, FakeWorkshop(), replace(PLAN, sweeps=3))


def test_a_run_that_is_late_makes_no_second_tries(tmp_path: Path) -> None:
    """Repetitions that never agree are repeated, until what was prepared has cost the time."""
    session = run(tmp_path / "s.jsonl", FakeWorkshop(disturbed=lambda number: 0.01 * number))
    repeats = [len(line.visit.times_s) for line in session.lines if line.visit is not None]
    assert repeats[0] >= PLAN.pace.most_repeats
    assert set(repeats[1:]) == {PLAN.pace.repeats}


EXPECTED_S = 100.0
"""Of a visit to layers: more than it takes here, and less than with what a slow host adds."""


class FakeHost:
    """Asked before a visit and after: it answers as planted, and then it is quiet for good."""

    def __init__(self, *quiet: bool, clock: FakeClock | None = None) -> None:
        self.asked = -FIRST_TRIES
        self.paused_s = 0.0
        self._quiet = quiet
        self._clock = clock or FakeClock()

    def work_s(self) -> float:
        number = self.asked
        self.asked += 1
        return 1.0 if number < 0 or number >= len(self._quiet) or self._quiet[number] else 2.0

    def sleep(self, seconds: float) -> None:
        self.paused_s += seconds
        self._clock.now_s += seconds

    @property
    def witness(self) -> HostWitness:
        return HostWitness(self.work_s, self._clock, self.sleep, budget_s=MOST_WAITED_S)


class TestDisturbedHost:
    """Passes, which the host takes part in, are timed while it is at its own speed."""

    ONE = replace(PLAN, probes=(probe("layers", 1),), sweeps=1)
    EXTRA_S = (0.0, 0.03, 0.03, 0.01, 0.01, 0.02, 0.02)
    """What each job takes on top, by how often the host was asked so far."""

    def left(self, path: Path, host: FakeHost, planned: Plan = ONE) -> float:
        """What the visit that is kept took on top in each repetition."""
        extra_s = dict(enumerate(self.EXTRA_S))
        workshop = FakeWorkshop(disturbed=lambda _: extra_s.get(host.asked, 0.0))
        session = run(path, workshop, planned, host=host.witness)
        [line] = [line for line in session.lines if line.probe != REFERENCE]
        assert line.visit is not None
        return line.visit.typical_s - line.visit.units * 1e-3

    @pytest.mark.parametrize(
        ("quiet", "visits", "kept_s"),
        [
            ((True, True), 1, 0.03),
            ((True, False, True, True), 2, 0.01),
            ((True, False, True, False, True, True), 3, 0.02),
            ((True, False) * MOST_VISITS, MOST_VISITS, 0.01),
        ],
    )
    def test_the_first_quiet_visit_is_kept_or_the_fastest_where_none_is(
        self, tmp_path: Path, quiet: tuple[bool, ...], visits: int, kept_s: float
    ) -> None:
        host = FakeHost(*quiet)
        assert self.left(tmp_path / "s.jsonl", host) == pytest.approx(kept_s)
        assert host.asked == 2 * visits
        assert host.paused_s == 0.0

    def test_a_visit_waits_until_the_host_is_quiet(self, tmp_path: Path) -> None:
        host = FakeHost(False, False, True, True)
        self.left(tmp_path / "s.jsonl", host)
        assert host.asked == 4
        assert host.paused_s > 0.0

    def test_a_whole_calibration_waits_for_so_long_and_no_longer(self, tmp_path: Path) -> None:
        host = FakeHost(*[False] * 100_000)
        probes = tuple(probe("layers", rows) for rows in (1, 2, 3))
        session = run(
            tmp_path / "s.jsonl",
            FakeWorkshop(),
            replace(self.ONE, probes=probes),
            host=host.witness,
        )
        visits = [line for line in session.lines if line.probe == "layers" and line.visit]
        assert len(visits) == 3
        assert MOST_WAITED_S <= host.paused_s < MOST_WAITED_S + 0.1

    @pytest.mark.parametrize(
        ("quiet", "waited_s"),
        [((), 0.0), ((False,) * 2000, 40.0), ((True, False, True, False), 0.0)],
        ids=["quiet", "waits", "spoilt"],
    )
    def test_what_a_slow_host_takes_makes_nothing_hurried(
        self, tmp_path: Path, quiet: tuple[bool, ...], waited_s: float
    ) -> None:
        """Repetitions never agree, so that all six are made where there is time for them."""
        workshop = FakeWorkshop(disturbed=lambda number: 0.01 * number)
        host = FakeHost(*quiet, clock=workshop.clock)
        probes = tuple(
            replace(probe("layers", rows), material=str(rows), make_s=EXPECTED_S)
            for rows in (1, 2, 3)
        )
        planned = replace(self.ONE, probes=probes, reference_every=10)
        session = run(tmp_path / "s.jsonl", workshop, planned, host=host.witness)
        made = [line.visit for line in session.lines if line.probe == "layers"]
        assert host.paused_s == pytest.approx(waited_s)
        assert all(each and len(each.times_s) >= PLAN.pace.most_repeats for each in made[1:])

    @pytest.mark.parametrize(("name", "asked"), [("attention", 0), ("layers", 2), ("host", 2)])
    def test_passes_alone_ask_the_host(self, tmp_path: Path, name: str, asked: int) -> None:
        host = FakeHost()
        self.left(tmp_path / "s.jsonl", host, replace(self.ONE, probes=(probe(name, 1),)))
        assert host.asked == asked

    def test_what_is_submitted_ahead_does_not_ask_the_host(self, tmp_path: Path) -> None:
        class Ahead(FakeWorkshop):
            def workload(self, probe: Probe) -> Workload:
                made = FakeWorkload(self.clock, unit_s=probe.unit_s)
                made.is_ahead = True
                return made

        host = FakeHost()
        session = run(tmp_path / "s.jsonl", Ahead(), self.ONE, host=host.witness)
        assert any(line.visit and line.visit.ahead for line in session.lines)
        assert host.asked == 0


def test_lines_say_how_far_it_is_about_every_ten_seconds() -> None:
    clock, text = FakeClock(), io.StringIO()
    lines = Lines(text, clock)
    lines.start(100.0, "begins")
    for _ in range(100):
        clock.now_s += 1.0
        lines.advance(1.0, "linear")
    said = text.getvalue().splitlines()
    assert said[0] == "begins"
    assert said[1] == " 10%  linear"
    assert len(said) == 11


def test_the_device_itself_can_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One probe of each kind, through the real kernels; a second call reads them back."""

    def tiny(*arguments: object) -> Plan:
        whole = plan(read_environment(), "full", ("4bit",), SLOW)
        firsts = {each.probe: each for each in reversed(whole.probes)}
        pace = Pace(repetition_s=0.0, repeats=1, most_repeats=1, check_tries=1, limit_s=0.1)
        return replace(whole, probes=tuple(firsts.values()), pace=pace)

    def limited(*, budget_s: float, say: Callable[[str], None]) -> HostWitness:
        assert budget_s == MOST_WAITED_S
        return HostWitness(lambda: 1.0, budget_s=budget_s, say=say)

    monkeypatch.setattr(measuring, "plan", tiny)
    monkeypatch.setattr(measuring, "HostWitness", limited)
    path = tmp_path / "s.jsonl"
    session = run_calibration("full", ("4bit",), path, Lines(io.StringIO()))
    assert session.skipped == ()
    kinds = {sample.probe for sample in session.samples}
    assert kinds == {
        *("op", "copy", "link", "linear", "attention", "experts", "layers", "host", REFERENCE)
    }
    assert all(sample.seconds > 0 for sample in session.samples)
    assert run_calibration("full", ("4bit",), path, Lines(io.StringIO())).samples == session.samples


SLOW = Speed(row_weights_per_s=3e8, bytes_per_s=1e9, kernel_s=1e-5)


@pytest.mark.parametrize(("mode", "formats"), [("fast", ()), ("quick", ("5bits",))])
def test_unknown_names_are_refused_before_anything_runs(
    tmp_path: Path, mode: str, formats: tuple[str, ...]
) -> None:
    with pytest.raises(InputError):
        run_calibration(mode, formats, tmp_path / "s.jsonl", Lines(io.StringIO()))
    assert list(tmp_path.iterdir()) == []


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_decoded_tokens_are_shown_only_to_somebody() -> None:
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        with token_bar(stream) as tell:
            tell(5, 10)
            tell(10, 10)
        assert bool(stream.getvalue()) is shown
