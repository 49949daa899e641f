"""What attends in a process: a library, whose plans MLX keeps, or a kernel of MLX's own."""

from __future__ import annotations

from calibrate.environment import Environment
from model.machine.kernels.attention import VectorAttention, library_attention, vector_attention

USUAL_PLANS = 256
PLANS_VARIABLE = "MLX_CUDA_SDPA_CACHE_SIZE"


def plans_attention(environment: Environment) -> bool:
    """Whether a library plans attention in such a process."""
    variables = dict(environment.mlx_variables)
    return library_attention(environment.device, environment.runtime, variables) is not None


def own_attention(environment: Environment) -> VectorAttention | None:
    """The rule of MLX's own kernel where it takes several rows in such a process."""
    variables = dict(environment.mlx_variables)
    return vector_attention(environment.device, environment.runtime, variables)


def plans_kept(environment: Environment) -> int:
    """How many plans MLX keeps in such a process."""
    stated = dict(environment.mlx_variables).get(PLANS_VARIABLE, "")
    return int(stated) if stated.isdigit() else USUAL_PLANS
