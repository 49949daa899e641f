"""Times of what must be quick: `make bench`. Wall-clock claims come from here, not from tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import count
from statistics import median
from time import perf_counter

import numpy as np

from model.machine.machine import Machine
from model.machine.profile_store import named_profile
from model.network.checkpoint import Checkpoint
from model.network.target import load_target
from model.planners.sublayers import plan_sublayers, sublayer_times
from model.prediction.break_even import break_even
from model.prediction.prediction import predict
from model.prediction.round_costs import RoundCosts, round_costs
from model.progress.acceptance import Acceptance
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative
from model.units import Quantity

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
SEVERAL = np.linspace(0.0, 8192.0, 200)
ACCEPTANCES = np.linspace(0.0, 1.0, 200)
LENGTHS = tuple(range(1, 17))


def process(arguments: list[str]) -> None:
    """Run one fresh Python process to its end."""
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def report(
    name: str, work: Callable[[], object], *, repeats: int = 9, units: int = 1, calls: int = 1
) -> None:
    """Print the best and the median time of one unit of work; the best is the least disturbed."""
    times: list[float] = []
    for _ in range(repeats):
        start = perf_counter()
        for _ in range(calls):
            work()
        times.append((perf_counter() - start) / (units * calls))
    best, middle = min(times), median(times)
    scale, unit = (1e3, "ms") if best >= 1e-3 else (1e6, "us") if best >= 1e-6 else (1e9, "ns")
    print(f"{name:<50} best {scale * best:8.2f} {unit}   median {scale * middle:8.2f} {unit}")


def main() -> None:
    """Time commands, one prediction, one break-even table, and a sweep."""
    for name, arguments in PROCESSES.items():
        report(name, lambda arguments=arguments: process(arguments))
    profile = named_profile("m3-10core-16gb")
    target, draft = (load_target(name, "4bit") for name in ("llama-3.1-8b", "llama-3.2-1b"))
    acceptance = Acceptance(by_position=(0.7,))
    speculative = Speculative(draft=draft, draft_length=4, acceptance=acceptance)
    machine = profile.machine
    # Passes are kept, so that every call asks about a context that was not asked about before.
    contexts = count(1, 1)
    report("plain round", lambda: Plain().round(target, machine, float(next(contexts))), calls=100)
    report(
        "speculative round",
        lambda: speculative.round(target, machine, float(next(contexts))),
        calls=100,
    )
    report(
        "prediction with interval",
        lambda: predict(speculative, target, profile, context=float(next(contexts))),
        calls=20,
    )
    report(
        "break-even of 16 draft lengths",
        lambda: break_even(costs_of(speculative, target, machine, float(next(contexts)))),
    )
    report(
        "one cell of a sweep over context",
        lambda: speculative.round(target, machine, CONTEXTS),
        units=len(CONTEXTS),
    )
    report(
        "one cell of acceptance x draft length x context",
        lambda: costs_of(speculative, target, machine, SEVERAL).speedup_map(ACCEPTANCES),
        units=len(ACCEPTANCES) * len(LENGTHS) * len(SEVERAL),
    )
    report(
        "break-even map, 200 acceptances x 200 contexts",
        lambda: costs_of(speculative, target, machine, SEVERAL, (4,)).speedup_map(ACCEPTANCES),
    )
    times = sublayer_times(target, machine, context=8192.0)
    report(
        "best set of 64 sublayers and draft length",
        lambda: plan_sublayers(
            target,
            machine,
            context=8192.0,
            acceptance_factors={
                each: 0.9 + 0.0015 * index for index, each in enumerate(sorted(times))
            },
            draft_lengths=range(1, 9),
        ),
    )


def costs_of(
    strategy: Speculative,
    target: Checkpoint,
    machine: Machine,
    context: Quantity,
    draft_lengths: Sequence[int] = LENGTHS,
) -> RoundCosts:
    """The rounds of a sweep."""
    return round_costs(strategy, target, machine, context=context, draft_lengths=draft_lengths)


if __name__ == "__main__":
    main()
