r"""Draws of fitted constants: a Bayesian bootstrap, one Gauss-Newton step deep.

Each replicate weights the timings by independent exponential numbers of mean one (Rubin, 1981):
unlike resampling, no regime ever loses its last timing. The refit of a replicate starts at the
optimum, so one Gauss-Newton step gets it right to first order (Davidson and MacKinnon, 1999):

.. math:: \theta_b = \hat\theta
          + (J^T W_b J + \lambda I)^{-1} J^T W_b\, r_b

on log constants, with J the derivative of log times and :math:`\lambda` a unit-width prior in
units of the scatter: a constant the timings do not see moves within a factor of e, not off to
infinity. A constant whose value is zero stays zero; the step ends at three widths of the prior.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from model.units import Array

DRAWS = 100
SEED = 20261129
LARGEST_STEP_LOG = 3.0
DIFFERENCE_LOG = 1e-4


def replicate_weights(timings: int, *, draws: int = DRAWS, seed: int = SEED) -> Array:
    """Weights of shape (draws, timings): exponential, of mean one in each replicate."""
    weights = np.random.default_rng(seed).exponential(size=(draws, timings))
    return weights / weights.mean(axis=1, keepdims=True)


def drawn(
    values: Array,
    predict_s: Callable[[Array], Array],
    seconds: Array,
    sigma_log: Array,
    weights: Array,
    *,
    reference_s: Array | None = None,
) -> Array:
    """Constants refitted to each replicate: shape (draws, constants).

    `predict_s` maps constants to the times of all timings; `reference_s`, of shape
    (draws, timings), are predictions at the same constants where other constants were drawn too,
    so that what those could be widens these.
    """
    predicted = predict_s(values)
    free = np.flatnonzero(values > 0.0)
    jacobian = np.empty((len(seconds), len(free)))
    for column, index in enumerate(free):
        moved = values.copy()
        moved[index] *= np.exp(DIFFERENCE_LOG)
        jacobian[:, column] = (np.log(predict_s(moved)) - np.log(predicted)) / DIFFERENCE_LOG
    reference = np.broadcast_to(predicted, weights.shape) if reference_s is None else reference_s
    residuals = np.log(seconds) - np.log(reference)
    scatter = max(float(np.sqrt(np.mean((np.log(seconds / predicted)) ** 2))), 1e-3)
    inverse = np.sqrt(weights) / np.maximum(sigma_log, scatter)
    scaled: Array = inverse[:, :, None] * jacobian
    normal = np.einsum("dti,dtj->dij", scaled, scaled) + np.eye(len(free))
    gradient = np.einsum("dti,dt->di", scaled, inverse * residuals)
    steps: Array = np.linalg.solve(normal, gradient[..., None])[..., 0]
    steps = np.clip(steps, -LARGEST_STEP_LOG, LARGEST_STEP_LOG)
    result = np.tile(values, (len(weights), 1))
    result[:, free] *= np.exp(steps)
    return result
