"""Times of what must be quick: `make bench`. Wall-clock claims come from here, not from tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np

from model.acceptance import Acceptance
from model.break_even import round_costs
from model.prediction import predict
from model.profile_store import named_profile
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative
from model.target import load_target

PREDICTING = "predict llama-3.1-8b --format 4bit --draft llama-3.2-1b --draft-length 4"
PROCESSES = {
    "tokroof --help, cold": ["-m", "tokroof", "--help"],
    "tokroof models, cold": ["-m", "tokroof", "models"],
    "tokroof predict, cold": [
        *("-m", "tokroof", *PREDICTING.split(), "--acceptance", "0.7"),
        *("--machine", "m3-10core-16gb", "--json"),
    ],
}
CONTEXTS = np.linspace(0.0, 8192.0, 100_000)


def process(arguments: list[str]) -> None:
    """Run one fresh Python process to its end."""
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def report(name: str, work: Callable[[], object], *, repeats: int = 9, units: int = 1) -> None:
    """Print the best and the median time of one unit of work; the best is the least disturbed."""
    times: list[float] = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append((perf_counter() - start) / units)
    best, middle = min(times), median(times)
    scale, unit = (1e3, "ms") if best >= 1e-3 else (1e6, "us") if best >= 1e-6 else (1e9, "ns")
    print(f"{name:<44} best {scale * best:8.2f} {unit}   median {scale * middle:8.2f} {unit}")


def main() -> None:
    """Time commands, one prediction, one break-even table, and a sweep."""
    for name, arguments in PROCESSES.items():
        report(name, lambda arguments=arguments: process(arguments))
    profile = named_profile("m3-10core-16gb")
    target, draft = (load_target(name, "4bit") for name in ("llama-3.1-8b", "llama-3.2-1b"))
    acceptance = Acceptance(by_position=(0.7,))
    speculative = Speculative(draft=draft, draft_length=4, acceptance=acceptance)
    machine = profile.machine
    report("plain round", lambda: Plain().round(target, machine, 1024.0))
    report("speculative round", lambda: speculative.round(target, machine, 1024.0))
    report(
        "prediction with interval",
        lambda: predict(speculative, target, profile, context=1024.0),
    )
    report(
        "break-even of 16 draft lengths",
        lambda: round_costs(
            target, draft, machine, context=1024.0, draft_lengths=range(1, 17)
        ).break_even(),
    )
    report(
        "one cell of a sweep over context",
        lambda: speculative.round(target, machine, CONTEXTS),
        units=len(CONTEXTS),
    )


if __name__ == "__main__":
    main()
