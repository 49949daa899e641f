"""Which probes a device gets: the largest plan that its speed and memory allow.

The questions are the same for every device; what adapts is the size of the matrices. Sizes are
tried from the largest down, and the first plan that is expected to fit the time is taken. Probes
that share a matrix, a cache or a network stand side by side, because making those costs more
than timing them.
"""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.environment import Environment
from calibrate.grid import FAST_VOCAB, GRIDS, MODES, SIZES, SLOW_VOCAB, WIDTHS
from calibrate.planned_attention import own_attention
from calibrate.probe import Plan
from calibrate.questions import Author
from calibrate.session import Speed
from calibrate.timing import Pace
from model.errors import unknown_name
from model.network.weight_format import WeightFormat, weight_format

EXPECTED_S = {
    ("quick", False): 74.0,
    ("full", False): 270.0,
    ("quick", True): 45.0,
    ("full", True): 200.0,
}
"""Time that a plan may be expected to take, by mode and whether the device is slow. Guesses are a
third off, and more on a processor that others use too."""
SLOW_WEIGHTS_PER_S = 2e10
"""Below this a device is bound by arithmetic at one row already, so many rows teach nothing."""
MEMORY_SHARE = 0.5
"""Share of the memory that a probe may take: the rest of the computer goes on working."""
PACES = {
    True: Pace(repetition_s=0.006, repeats=3, most_repeats=15, check_tries=3, limit_s=3.0),
    False: Pace(repetition_s=0.02, repeats=2, most_repeats=6, check_tries=3, limit_s=3.0),
}
"""By whether the device is a processor: there waiting costs 20 us, not 200, and what spoils a
repetition is another program, which several short ones avoid better than one long."""
SWEEPS = 2
REFERENCE_EVERY = 25


def plan(environment: Environment, mode: str, formats: Sequence[str], speed: Speed) -> Plan:
    """The plan of a mode for a device as fast as `speed`.

    Raises:
        InputError: there is no such mode or format.
    """
    forms = checked(environment.device, mode, formats)
    vector = own_attention(environment)
    slow = speed.row_weights_per_s < SLOW_WEIGHTS_PER_S

    def of_sizes(sizes: Sequence[int]) -> Plan:
        author = Author(
            device=environment.device,
            vector=vector,
            speed=speed,
            forms=forms,
            grid=GRIDS[mode, slow],
            sizes=tuple(WIDTHS[size] for size in sizes),
            vocab=SLOW_VOCAB if slow else FAST_VOCAB,
        )
        return Plan(
            mode=mode,
            formats=tuple(form.name for form in forms),
            probes=tuple(author.probes()),
            reference=author.reference(),
            reference_every=REFERENCE_EVERY,
            sweeps=SWEEPS,
            pace=PACES[environment.device == "cpu"],
            memory_bytes=int(MEMORY_SHARE * environment.memory_limit_bytes),
        )

    candidates = (of_sizes(sizes) for sizes in SIZES[mode])
    affordable = (each for each in candidates if each.total_s <= EXPECTED_S[mode, slow])
    return next(affordable, of_sizes(SIZES[mode][-1]))


def checked(device: str, mode: str, names: Sequence[str]) -> tuple[WeightFormat, ...]:
    """The formats of these names, or the usual three; as this device stores them.

    MLX's CPU back end is usable with 32-bit activations only, and then scales have 32 bits too.

    Raises:
        InputError: there is no such mode or format.
    """
    if mode not in MODES:
        raise unknown_name("mode", mode, MODES)
    on_processor = device == "cpu"
    chosen = names or ("4bit", "8bit", "fp32" if on_processor else "bf16")
    forms = dict.fromkeys(weight_format(name) for name in chosen)
    return tuple(form.with_scale_bits(32) if on_processor else form for form in forms)
