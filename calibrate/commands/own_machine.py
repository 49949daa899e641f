"""Whether records of `tokroof run` are of the machine that they are compared with."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.environment import Environment
from calibrate.planned_attention import plans_attention
from calibrate.run_record import Run
from model.errors import InputError
from model.machine.kernels.attention import library_attention
from model.machine.profile import Header, Profile


def check_chips(name: str, runs: Sequence[Run], header: Header) -> None:
    """Refuse runs of another chip or back end: their errors would say nothing of the machine.

    Raises:
        InputError: there are some.
    """
    for here in dict.fromkeys(run.environment for run in runs):
        if not is_of(here, header):
            cores = f", {here.gpu_cores}-core GPU" if here.gpu_cores else ""
            raise InputError(
                f"{name}: runs on {here.chip}{cores} ({here.device})",
                f"are not of {header.name}, which is {header.chip} ({header.device})",
                "give the --machine they were made on, or add --any-machine to compare anyway",
            )


def check_attention(name: str, runs: Sequence[Run], profile: Profile) -> None:
    """Refuse runs of which a library attended and the profile's did not, or the other way round.

    Raises:
        InputError: there are some.
    """
    header = profile.header
    usual = library_attention(header.device, header.runtime, {})
    by_library = library_attention(header.device, header.runtime, profile.mlx_variables) is not None
    for here in dict.fromkeys(run.environment for run in runs):
        if usual is not None and plans_attention(here) != by_library:
            stated = dict(here.mlx_variables).get(usual.switch)
            how = f"without {usual.switch}" if stated is None else f"with {usual.switch}={stated}"
            raise InputError(
                f"{name}: runs {how}",
                f"do not attend as {header.name} does",
                "give the --machine that was calibrated so, or add --any-machine",
            )


def is_of(environment: Environment, header: Header) -> bool:
    """Whether runs are of a profile's chip and back end, as far as both state the GPU's cores.

    Profiles of published runs are of an "Apple M3 Max, 40-core GPU", calibrated ones of a chip.
    """
    alike = (environment.chip, environment.device) == (header.chip.split(", ")[0], header.device)
    return alike and (header.gpu is None or environment.gpu_cores in (None, header.gpu.cores))


def strangers(runs: Sequence[Run], header: Header) -> list[str]:
    """A line for each machine and runtime of the runs that is not the profile's."""
    here = (header.chip, header.runtime)
    seen = dict.fromkeys((run.environment.chip, run.environment.runtime) for run in runs)
    return [
        f"note: runs of {chip} ({runtime}) are compared with {header.chip} ({header.runtime})"
        for chip, runtime in seen
        if (chip, runtime) != here
    ]
