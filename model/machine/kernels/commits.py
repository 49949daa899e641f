"""How many kernels MLX gathers before the device gets to see the first of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from model.machine.kernels.releases import priced_release
from model.machine.kernels.tables import BACK_ENDS, lines_for


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The kernels of one commit on these architectures, unless the environment says otherwise.

    Without architectures it is of all that no line before names.
    """

    kernels: int
    architectures: tuple[str, ...]
    variable: str


def kernels_per_commit(
    back_end: str, runtime: str, architecture: str, variables: Mapping[str, str]
) -> float:
    """Kernels that are submitted before a device begins with them; 0 where that is not known.

    An empty `architecture` is one that nobody states. `variables` are the environment variables of
    MLX's process.

    >>> kernels_per_commit("cuda", "mlx-0.32.4", "sm_90", {})
    100.0
    >>> kernels_per_commit("cuda", "mlx-0.32.4", "sm_90", {"MLX_MAX_OPS_PER_BUFFER": "8"})
    8.0
    """
    release = priced_release(runtime)
    if release is None or back_end not in BACK_ENDS:
        return 0.0
    for each in lines_for(Commit, "commits", back_end, release, None):
        if architecture and (not each.architectures or architecture in each.architectures):
            stated = variables.get(each.variable, "")
            return float(stated) if stated.isdigit() and int(stated) else float(each.kernels)
    return 0.0
