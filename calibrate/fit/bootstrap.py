r"""Draws of fitted constants: a parametric bootstrap, one Gauss-Newton step deep.

Each replicate is what the timings could have been: the fitted curve with fresh log-normal noise
of the scatter that was seen. (Resampling the timings themselves would call a constant certain
whenever as few timings as unknowns determine it.) The refit of a replicate starts at the
optimum, so one Gauss-Newton step gets it right to first order (Davidson and MacKinnon, 1999):

.. math:: \theta_b = \hat\theta
          + (J^T S^{-2} J + \lambda^{-2})^{-1} (J^T S^{-2} r_b + \lambda^{-1} \eta_b)

on log constants, with J the derivative of log times, S the scatter, :math:`\lambda = 2` the width
of a prior (a factor of 7) and :math:`\eta_b` its own noise: a constant the timings do not see is
as uncertain as that. A constant whose value is zero stays zero.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from model.machine.constant import Origin
from model.units import Array

DRAWS = 100
PRIOR_WIDTH_LOG = 2.0
LARGEST_STEP_LOG = 5.0
DIFFERENCE_LOG = 1e-4


def drawn(
    values: Array,
    predict_s: Callable[[Array], Array],
    seconds: Array,
    sigma_log: Array,
    *,
    seed: int,
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
    left = float(np.sqrt(np.mean(np.log(seconds / predicted) ** 2)))
    scatter = np.maximum(sigma_log, left)
    generator = np.random.default_rng(seed)
    noise = generator.standard_normal((DRAWS, len(seconds)))
    prior_noise = generator.standard_normal((DRAWS, len(free))) / PRIOR_WIDTH_LOG
    shift = 0.0 if reference_s is None else np.log(reference_s / predicted) / scatter
    scaled: Array = jacobian / scatter[:, None]
    normal: Array = scaled.T @ scaled + np.eye(len(free)) / PRIOR_WIDTH_LOG**2
    gradient: Array = (noise - shift) @ scaled + prior_noise
    steps = np.clip(np.linalg.solve(normal, gradient.T).T, -LARGEST_STEP_LOG, LARGEST_STEP_LOG)
    result = np.tile(values, (DRAWS, 1))
    result[:, free] *= np.exp(steps)
    return result


def origin_of(draws: Array) -> Origin:
    """Measured, or a prior where the timings say less of a constant than its prior does.

    The information of a draw's two sources adds, so that the timings give the smaller part where
    more than half of the prior's variance is left.
    """
    left_log = np.std(np.log(draws))
    return Origin.PRIOR if left_log**2 > PRIOR_WIDTH_LOG**2 / 2.0 else Origin.MEASURED
