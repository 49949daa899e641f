"""Runs a plan: every probe once per sweep, each visit kept as soon as it is over.

A probe that fails, or needs more memory than is safe, is skipped with its reason, and the rest
goes on. Interrupt it at any time: the same call resumes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, final

from calibrate import mlx_device
from calibrate.doubts import warnings_of
from calibrate.environment import read_environment
from calibrate.first_look import first_look
from calibrate.host_witness import HostWitness
from calibrate.plan import checked, plan
from calibrate.probe import Plan, Probe
from calibrate.progress import Progress, progress_on
from calibrate.samples import PASS_PROBES, REFERENCE, Line
from calibrate.session import SCHEMA, Header, Session, SessionFile, read_session
from calibrate.timing import Clock, Visit, Workload, chain_length, is_double, visit
from calibrate.workloads import Workshop

LATENESS, GRACE_S = 1.2, 5.0
"""A run that takes longer than expected times LATENESS, plus GRACE_S, gives up second tries."""
MOST_VISITS = 3
"""Visits at once to what the host takes part in, if it is disturbed each time."""
MOST_WAITED_S = 60.0
"""Seconds that a whole calibration waits for a quiet host."""


class Source(Protocol):
    """Where workloads come from."""

    def workload(self, probe: Probe) -> Workload:
        """The work of a probe."""
        ...

    def clear(self) -> None:
        """Let go of whatever is held, after a failure perhaps of memory."""
        ...


def run_calibration(
    mode: str, formats: Sequence[str], session_path: Path, progress: Progress | None = None
) -> Session:
    """Measure this device, or go on with a session that was interrupted.

    Args:
        mode: "quick" or "full".
        formats: Names of weight formats; none means 4 bit, 8 bit and the device's own float.
        session_path: The file that the measurement grows in.
        progress: Where to tell how far it is; stderr by default.

    Raises:
        InputError: the mode or a format is unknown, or the file is another measurement's.
    """
    environment = read_environment()
    checked(environment.device, mode, formats)
    found = read_session(session_path)
    speed = first_look() if found is None else found.header.speed
    planned = plan(environment, mode, formats, speed)
    header = Header(
        schema=SCHEMA,
        began=time.time(),
        mode=mode,
        formats=planned.formats,
        plan=planned.fingerprint,
        speed=speed,
        environment=environment,
    )
    return measure(planned, header, session_path, progress or progress_on())


def measure(
    planned: Plan,
    header: Header,
    session_path: Path,
    progress: Progress,
    *,
    workshop: Source | None = None,
    clock: Clock = time.perf_counter,
    host: HostWitness | None = None,
) -> Session:
    """Visit what a plan asks for and a session file does not have yet.

    What the host takes part in waits until it is quiet, `MOST_WAITED_S` in all at most, and what
    that takes makes nothing late.

    Raises:
        InputError: the file holds a session of another environment or plan.
    """
    file = SessionFile(session_path, header)
    run = Run(
        planned,
        file,
        workshop or Workshop(),
        clock,
        host or HostWitness(budget_s=MOST_WAITED_S, say=progress.say),
    )
    sweeps = [list(run.pending(number)) for number in range(planned.sweeps)]
    expected = [planned.expected_s(probes, number) for number, probes in enumerate(sweeps)]
    total_s = sum(map(sum, expected))
    resumed = f"resumes {session_path}: {len(file.lines)} visits are kept, " if file.lines else ""
    progress.start(total_s, f"{resumed}{sum(map(len, sweeps))} to make, about {total_s:.0f} s")
    due_s = clock() + GRACE_S
    try:
        with mlx_device.resident():
            for number, (probes, times_s) in enumerate(zip(sweeps, expected, strict=True)):
                for probe, expected_s in zip(probes, times_s, strict=True):
                    lost_s = run.lost_s
                    reason = run.visit(probe, number, hurried=clock() > due_s)
                    due_s += LATENESS * expected_s + run.lost_s - lost_s
                    progress.advance(expected_s, f"{probe.probe} {probe.label}")
                    if reason is not None:
                        progress.say(f"skipped {probe.probe} {probe.label}: {reason}")
    except KeyboardInterrupt:
        progress.say(f"{len(file.lines)} visits are kept; the same command goes on from here")
        raise
    finally:
        progress.close()
    session = Session(header=file.header, lines=tuple(file.lines))
    for warning in warnings_of(session.samples):
        progress.say(f"warning: {warning}")
    return session


@final
class Run:
    """One go at a plan: what is left of it, and how a probe is visited."""

    def __init__(
        self,
        planned: Plan,
        file: SessionFile,
        workshop: Source,
        clock: Clock,
        host: HostWitness,
    ) -> None:
        self._host = host
        self.lost_s = 0.0
        """What waiting for the host, and visits that it spoilt, have taken."""
        self._plan = planned
        self._file = file
        self._workshop = workshop
        self._clock = clock

    def pending(self, sweep: int) -> Iterator[Probe]:
        """What a sweep still has to visit; a reference only beside a probe that it refers to."""
        lines = self._file.lines
        done = {(line.probe, line.settings) for line in lines if line.sweep == sweep}
        failed = {(line.probe, line.settings) for line in lines if line.reason is not None}
        reference: Probe | None = None
        begun = False
        for probe in self._plan.sweep(sweep):
            if probe.probe == REFERENCE:
                reference = probe
            elif (probe.probe, probe.label) not in done | failed:
                if reference is not None:
                    yield reference
                reference, begun = None, True
                yield probe
        if begun and reference is not None:
            yield reference

    def visit(self, probe: Probe, sweep: int, *, hurried: bool) -> str | None:
        """Visit a probe and keep what was seen; the reason if it had to be skipped just now."""
        earlier = self._earlier(probe)
        if probe.probe != REFERENCE and any(line.reason is not None for line in earlier):
            return None
        seen = [line.visit for line in earlier if line.visit is not None]
        visited, reason = None, self._unsafe(probe)
        at = time.time() - self._file.header.began
        if reason is None:
            try:
                visited = self._timed(probe, seen, hurried=hurried)
            except Exception as error:  # whatever fails in a kernel fails for this probe alone
                self._workshop.clear()
                first_line = (str(error).strip() or "no message").splitlines()[0]
                reason = f"{type(error).__name__}: {first_line}"
        self._file.append(
            Line(
                probe=probe.probe,
                settings=probe.label,
                sweep=sweep,
                at=at,
                visit=visited,
                reason=reason,
            )
        )
        return reason

    def _timed(self, probe: Probe, seen: Sequence[Visit], *, hurried: bool) -> Visit:
        """A visit; the first finds the length of the chain, and it is checked until it fits."""
        pace = self._plan.pace.hurried if hurried else self._plan.pace
        workload = self._workshop.workload(probe)
        known = seen[0].units if seen else None
        units = known or chain_length(workload, self._clock, pace, probe.unit_s)
        check = not any(is_double(each.doubling) for each in seen)
        if workload.is_ahead or probe.probe not in PASS_PROBES:
            return visit(workload, self._clock, pace, units, check=check)
        return self._quiet_visit(lambda: visit(workload, self._clock, pace, units, check=check))

    def _quiet_visit(self, make: Callable[[], Visit]) -> Visit:
        """The first visit that the host was quiet before and after, or the fastest of a few."""
        begun = self._clock()
        made: list[Visit] = []
        while True:
            was_quiet = self._host.await_quiet(MOST_WAITED_S)
            started = self._clock()
            made.append(make())
            stayed_quiet = was_quiet and self._host.is_quiet()
            if stayed_quiet or len(made) == MOST_VISITS or self._host.is_spent:
                break
        self.lost_s += started - begun
        if stayed_quiet:
            return made[-1]
        return min(made, key=lambda each: each.typical_s / each.units)

    def _earlier(self, probe: Probe) -> list[Line]:
        key = (probe.probe, probe.label)
        return [line for line in self._file.lines if (line.probe, line.settings) == key]

    def _unsafe(self, probe: Probe) -> str | None:
        """Why a probe would take more memory than is safe."""
        if probe.memory_bytes <= self._plan.memory_bytes:
            return None
        needed, safe = probe.memory_bytes / 1e9, self._plan.memory_bytes / 1e9
        return f"needs {needed:.1f} GB of memory, and {safe:.1f} GB are safe"
