"""Whether a library plans the attention of a process, and how many of its plans MLX keeps."""

from __future__ import annotations

from calibrate.environment import Environment
from model.machine.kernels.attention import library_attention

USUAL_PLANS = 256
PLANS_VARIABLE = "MLX_CUDA_SDPA_CACHE_SIZE"


def plans_attention(environment: Environment) -> bool:
    """Whether a library plans attention in such a process."""
    variables = dict(environment.mlx_variables)
    return library_attention(environment.device, environment.runtime, variables) is not None


def plans_kept(environment: Environment) -> int:
    """How many plans MLX keeps in such a process."""
    stated = dict(environment.mlx_variables).get(PLANS_VARIABLE, "")
    return int(stated) if stated.isdigit() else USUAL_PLANS
