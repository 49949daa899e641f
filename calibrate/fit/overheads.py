r"""What a pass costs besides its products, and what the host charges, from whole layers.

The row laws are fitted before; here they are fixed. With them a pass is linear in the unknown
constants of :class:`model.machine.overheads.Device`, so its device time is

.. math:: t_{device} = t_{products} + A\,\theta_{device}

where A counts layers, passes, row elements and logits, and the host's build and submit times are
linear likewise. The ways to run passes then give equations that no other probe has:

* build: :math:`build`
* submit: :math:`\max(device, submit)` of a network too narrow to keep a device busy
* queued: :math:`device`
* pipelined: :math:`\max(device, submit)`
* decode: :math:`\max(device, build + submit + read)`
* awaited: :math:`build + \max(device + b\, submit, submit + device / c) + sync` of c commits, where
  :math:`b = w + (1 - w) / c` and w is the share of submitting before the first kernel
* growing: the same, with what a new context costs in :math:`build`

Real runs of some models may join: a round is priced by the whole model, so they see what no
probe of a single pass does. All are fitted together by least squares on log times and log
constants, each with a prior a factor of 7 wide, so that a constant which the timings do not see
keeps a sane value instead of being driven to zero by noise. Where that prior says more of a
constant than the timings do, it is labelled as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np
from scipy.optimize import least_squares

from calibrate.fit.bootstrap import PRIOR_WIDTH_LOG, drawn, origin_of
from calibrate.fit.pass_timings import FITTED_DEVICE, format_name, pass_timings, products_s
from calibrate.fit.run_timings import run_timings
from calibrate.probe_network import MIXTURE, NORMED, PLAIN
from calibrate.run_record import Run
from calibrate.samples import PASS_PROBES, Sample
from model.machine.constant import Constant
from model.machine.kernels.attention import leaves_scores
from model.machine.machine import Machine
from model.machine.profile import APART_REREAD, HOST_CONSTANTS, MORE_ROWS, ONE_ROW, WALK_SHARE
from model.machine.row_law import Product
from model.network.weight_format import weight_format
from model.units import Array

PRIOR_KERNELS = {
    "layer_s": 20.0,
    "more_rows_layer_s": 3.0,
    "pass_s": 20.0,
    "experts_layer_s": 15.0,
    "batch_layer_s": 10.0,
    "unfused_layer_s": 8.0,
    "head_norm_s": 2.0,
}
"""Small kernels in a decoder layer, in a pass outside its layers, and in what some layers add."""
PRIOR_BYTES = {"element_s": 40.0, "logit_s": 20.0}
"""Bytes that a layer moves per hidden unit, and sampling per logit."""
PRIOR_HOST_S = {
    "build_layer_s": 4e-5,
    "build_pass_s": 1e-4,
    "submit_layer_s": 4e-5,
    "submit_pass_s": 1e-4,
    "sync_s": 1e-4,
    "reshape_s": 3e-4,
    "build_experts_layer_s": 2e-5,
    "submit_experts_layer_s": 4e-5,
    "build_batch_layer_s": 1e-5,
    "submit_batch_layer_s": 2e-5,
    "build_unfused_layer_s": 5e-6,
    "submit_unfused_layer_s": 1e-5,
    "build_norm_s": 2e-6,
    "submit_norm_s": 2e-6,
    "submit_library_attention_s": 5e-6,
    "submit_more_rows_layer_s": 1e-5,
    "read_s": 5e-5,
}
"""About 40 operations a layer, 1 us each to build and to submit (mlx issue 4521)."""
PRIOR_MATRIX_S = 2e-6
PRIOR_SHARES = {APART_REREAD: 0.5, WALK_SHARE: 0.2}
ALWAYS = ("read_s", "submit_more_rows_layer_s")
"""What every device is asked beside the constants that every profile has."""

EXPERTS = ("experts_layer_s", "build_experts_layer_s", "submit_experts_layer_s")
NORMS = ("build_norm_s", "submit_norm_s")
SIDE_BY_SIDE = ("batch_layer_s", "build_batch_layer_s", "submit_batch_layer_s")
SCORES = ("unfused_layer_s", "build_unfused_layer_s", "submit_unfused_layer_s")
HEAD_NORMS = ("head_norm_s",)
COMMITS = (WALK_SHARE,)
LIBRARY = ("submit_library_attention_s",)
APART = (APART_REREAD,)
"""What is asked only where some measured pass has experts, norms, several sequences, or where the
runtime has no one kernel for attention of several rows, gathers kernels (and a deep pass was waited
for), hands attention to a library or tiles sequences apart. Norms of heads take time on the device,
which a layer of experts does not tell from its own."""
WHOLE = ("pipelined", "decode", "awaited", "growing")
"""Ways to run a pass in which host and device work together, as in a run: what the fit leaves on
these is what it may leave on a run."""
DEEP_LAYERS = 12
"""From here on most of a pass is submitted while the device works, if it does."""
PASS_SCATTER_LOG = 0.03
RUN_SCATTER_LOG = 0.03
"""Least scatter of a timing of a whole pass, and of the rounds of a run."""


def fit_overheads(
    samples: Sequence[Sample],
    machine: Machine,
    sampled: Machine,
    runs: Sequence[Run] = (),
) -> tuple[dict[str, Constant], float]:
    """The remaining constants of a machine, and the scatter left on whole passes and rounds.

    `machine` holds the fitted laws (its overheads are ignored), `sampled` their draws.
    """
    passes = [sample for sample in samples if sample.probe in PASS_PROBES]
    names = unknown_names(passes, machine)
    probes = pass_timings(passes, names, machine)
    rounds = run_timings(runs, names, machine)
    seconds = np.array([*(sample.seconds for sample in passes), *rounds.seconds])
    spreads = np.array([sample.spread for sample in passes])
    sigma_log = np.concatenate(
        [np.hypot(PASS_SCATTER_LOG, spreads), np.full(len(runs), RUN_SCATTER_LOG)]
    )
    prior = prior_values(names, machine)

    def predict_s(values: Array) -> Array:
        return np.concatenate([probes.predict_s(values), rounds.predict_s(values)])

    def residuals(steps_log: Array) -> Array:
        missed = np.log(predict_s(prior * np.exp(steps_log)) / seconds) / sigma_log
        return np.concatenate([missed, steps_log / PRIOR_WIDTH_LOG])

    # A robust loss keeps one disturbed probe from ruling.
    solution = least_squares(residuals, np.zeros(len(names)), loss="soft_l1", max_nfev=200)
    values = prior * np.exp(np.asarray(solution.x, dtype=float))
    drawn_laws = [
        replace(probes, products_s=products_s(passes, sampled)),
        *([run_timings(runs, names, sampled)] if runs else []),
    ]
    draws = drawn(
        values,
        predict_s,
        seconds,
        sigma_log,
        seed=crc32(b"overheads"),
        reference_s=np.concatenate([each.predict_s(values) for each in drawn_laws], axis=-1),
    )
    shares = np.isin(names, list(PRIOR_SHARES))
    values, draws = (np.where(shares, np.minimum(each, 1.0), each) for each in (values, draws))
    constants = {
        name: Constant(
            value=float(value),
            stderr=float(np.std(column)),
            unit="1" if name in PRIOR_SHARES else "s",
            origin=origin_of(column),
            draws=column,
        )
        for name, value, column in zip(names, values, draws.T, strict=True)
    }
    left_log = np.log(predict_s(values) / seconds)
    whole = np.array([sample.text("mode") in WHOLE for sample in passes] + [True] * len(runs))
    return constants, typical_residual_log(left_log[whole])


def typical_residual_log(left_log: Array) -> float:
    """The scatter of residuals, from their median: a few disturbed timings do not widen it all.

    Of a normal distribution the median of absolute values is 0.6745 standard deviations.
    """
    return float(np.median(np.abs(left_log))) / 0.6745 if len(left_log) else 0.1


def unknown_names(passes: Sequence[Sample], machine: Machine) -> tuple[str, ...]:
    """The constants that these passes are to determine: of what no pass has, nothing is told."""
    formats = sorted({format_name(sample) for sample in passes})
    submissions = [f"{each}.{end}" for each in formats for end in (ONE_ROW, MORE_ROWS)]
    kinds = {dict(sample.settings).get("network", PLAIN) for sample in passes}
    present = {
        EXPERTS: MIXTURE in kinds,
        NORMS: not kinds.isdisjoint((NORMED, MIXTURE)),
        SIDE_BY_SIDE: any(sample.number("sequences", 1) > 1 for sample in passes),
        APART: any(tiled_apart(sample, machine) for sample in passes),
        SCORES: leaves_scores(machine.vector_attention),
        HEAD_NORMS: any(norms_heads(sample) for sample in passes),
        COMMITS: machine.kernels_per_commit > 0 and any(is_deep(sample) for sample in passes),
        LIBRARY: machine.library_attention is not None,
    }
    special = [name for names, is_there in present.items() if is_there for name in names]
    return (*FITTED_DEVICE, *HOST_CONSTANTS, *ALWAYS, *special, *submissions)


def is_deep(sample: Sample) -> bool:
    """Whether a pass was waited for that has many kernels left after its first commit."""
    whole = sample.probe == "layers" and sample.text("mode") == "awaited"
    return whole and sample.number("layers") >= DEEP_LAYERS


def norms_heads(sample: Sample) -> bool:
    """Whether a pass timed on the device has norms of queries and keys, but no experts."""
    timed_alone = sample.probe == "layers" and sample.text("mode") == "queued"
    return timed_alone and dict(sample.settings).get("network", PLAIN) == NORMED


def tiled_apart(sample: Sample, machine: Machine) -> bool:
    """Whether the sequences of a measured pass have tiles of their own."""
    first = machine.tiled_apart_from(weight_format(format_name(sample)))
    return first is not None and 1 < first <= sample.number("sequences", 1)


def prior_values(names: Sequence[str], machine: Machine) -> Array:
    """What the unknowns are about on a device of this kernel floor and reading speed."""
    product = Product(read_bytes=2**20, depth=1024, columns=1024)
    law = next(iter(machine.laws.values()))
    byte_s = float(law.time(product, 1).total_s) / 2**20
    guesses = PRIOR_HOST_S | {
        name: kernels * float(machine.device.kernel_s) for name, kernels in PRIOR_KERNELS.items()
    }
    guesses |= {name: moved * byte_s for name, moved in PRIOR_BYTES.items()}
    guesses |= PRIOR_SHARES
    return np.array([guesses.get(name, PRIOR_MATRIX_S) for name in names])
