r"""What a pass costs besides its products, and what the host charges, from whole layers.

The row laws are fitted before; here they are fixed. With them a pass is linear in the unknown
constants of :class:`model.machine.Device`, so its device time is

.. math:: t_{device} = t_{products} + A\,\theta_{device}

where A counts layers, passes, row elements and logits, and the host's build and submit times are
linear likewise. The ways to run passes then give equations that no other probe has:

* build: :math:`build`
* submit: :math:`\max(device, submit)` of a network too narrow to keep a device busy
* pipelined: :math:`\max(device, submit)`
* decode: :math:`\max(device, build + submit)`
* awaited: :math:`build + \max(device, submit) + sync`

All are fitted together by least squares on log times and log constants, each with a prior a
factor of 7 wide, so that a constant which the timings do not see keeps a sane value instead of
being driven to zero by noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final
from zlib import crc32

import numpy as np
from scipy.optimize import least_squares

from calibrate.fit.bootstrap import PRIOR_WIDTH_LOG, drawn
from calibrate.fit.laws import sigmas_log
from calibrate.samples import Sample
from model.checkpoint import Checkpoint
from model.config import read_config
from model.constant import Constant, Origin
from model.forward import PassCost, forward_pass
from model.machine import Device, Host, Machine
from model.profile import DEVICE_CONSTANTS, HOST_CONSTANTS
from model.row_law import Product
from model.units import Array
from model.weight_format import weight_format

FITTED_DEVICE = tuple(name for name in DEVICE_CONSTANTS if name != "kernel_s")
UNKNOWNS = (*FITTED_DEVICE, *HOST_CONSTANTS)
DIMENSIONS = (
    ("hidden_size", "hidden"),
    ("intermediate_size", "intermediate"),
    ("num_attention_heads", "query_heads"),
    ("num_key_value_heads", "kv_heads"),
    ("head_dim", "head_dim"),
    ("vocab_size", "vocab"),
    ("num_hidden_layers", "layers"),
)
PRIOR_KERNELS = {"layer_s": 20.0, "pass_s": 20.0}
"""Small kernels in a decoder layer, and in a pass outside its layers."""
PRIOR_BYTES = {"element_s": 40.0, "logit_s": 20.0}
"""Bytes that a layer moves per hidden unit, and sampling per logit."""
PRIOR_HOST_S = {
    "build_layer_s": 4e-5,
    "build_pass_s": 1e-4,
    "submit_layer_s": 4e-5,
    "submit_pass_s": 1e-4,
    "sync_s": 1e-4,
}
"""About 40 operations a layer, 1 us each to build and to submit (mlx issue 4521)."""
PASS_PROBES = ("layers", "host")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PassTimings:
    """Measured passes as arrays: what the products take, and what multiplies each unknown.

    `products_s` has one entry per timing, or (draws, timings) where the laws are drawn.
    `device_counts` is (timings, device unknowns), `host_counts` (timings, 5): build layers and
    passes, submit layers and passes, syncs.
    """

    mode: tuple[str, ...]
    products_s: Array
    device_counts: Array
    host_counts: Array

    def predict_s(self, unknowns: Array) -> Array:
        """Times of all timings for constants in the order of `UNKNOWNS`."""
        device_s = self.products_s + self.device_counts @ unknowns[: len(FITTED_DEVICE)]
        charges = self.host_counts * unknowns[len(FITTED_DEVICE) :]
        build_s, submit_s = charges[:, 0] + charges[:, 1], charges[:, 2] + charges[:, 3]
        busy_s = np.maximum(device_s, submit_s)
        ways = {
            "build": np.broadcast_to(build_s, busy_s.shape),
            "submit": busy_s,
            "pipelined": busy_s,
            "decode": np.maximum(device_s, build_s + submit_s),
            "awaited": build_s + busy_s + charges[:, 4],
        }
        return np.choose([list(ways).index(mode) for mode in self.mode], list(ways.values()))


def fit_overheads(
    samples: Sequence[Sample], machine: Machine, sampled: Machine
) -> tuple[dict[str, Constant], float]:
    """The remaining constants of a machine, and the scatter left on whole passes.

    `machine` holds the fitted laws (its overheads are ignored), `sampled` their draws.
    """
    passes = [sample for sample in samples if sample.probe in PASS_PROBES]
    seconds = np.array([sample.seconds for sample in passes])
    sigma_log = sigmas_log(list(passes))
    timings = pass_timings(passes, machine)
    prior = prior_values(machine)

    def residuals(steps_log: Array) -> Array:
        predicted_s = timings.predict_s(prior * np.exp(steps_log))
        missed = np.log(predicted_s / seconds) / sigma_log
        return np.concatenate([missed, steps_log / PRIOR_WIDTH_LOG])

    # A robust loss keeps one disturbed probe from ruling.
    solution = least_squares(residuals, np.zeros(len(UNKNOWNS)), loss="soft_l1", max_nfev=2000)
    values = prior * np.exp(np.asarray(solution.x, dtype=float))
    reference_s = pass_timings(passes, sampled).predict_s(values)
    draws = drawn(
        values,
        timings.predict_s,
        seconds,
        sigma_log,
        seed=crc32(b"overheads"),
        reference_s=reference_s,
    )
    constants = {
        name: Constant(
            value=float(value),
            stderr=float(np.std(column)),
            unit="s",
            origin=Origin.MEASURED,
            draws=column,
        )
        for name, value, column in zip(UNKNOWNS, values, draws.T, strict=True)
    }
    left_log = np.log(timings.predict_s(values) / seconds)
    whole = np.array([sample.probe == "layers" for sample in passes])
    residual_log = float(np.sqrt(np.mean(left_log[whole] ** 2))) if whole.any() else 0.1
    return constants, residual_log


def prior_values(machine: Machine) -> Array:
    """What the unknowns are about on a device of this kernel floor and reading speed."""
    product = Product(read_bytes=2**20, depth=1024, columns=1024)
    law = next(iter(machine.laws.values()))
    byte_s = float(law.time(product, 1).total_s) / 2**20
    guesses = PRIOR_HOST_S | {
        name: kernels * float(machine.device.kernel_s) for name, kernels in PRIOR_KERNELS.items()
    }
    guesses |= {name: moved * byte_s for name, moved in PRIOR_BYTES.items()}
    return np.array([guesses[name] for name in UNKNOWNS])


def pass_timings(passes: Sequence[Sample], machine: Machine) -> PassTimings:
    """What each measured pass consists of, on a machine whose overheads are taken out."""
    bare = without_overheads(machine)
    costs = [probe_cost(sample, bare) for sample in passes]
    counts = np.array(
        [[unit_count(sample, bare, name) for name in FITTED_DEVICE] for sample in passes]
    )
    layers = np.array([float(sample.number("layers")) for sample in passes])
    ones = np.ones_like(layers)
    return PassTimings(
        mode=tuple(sample.text("mode") for sample in passes),
        products_s=np.stack(np.broadcast_arrays(*[cost.device_s for cost in costs]), axis=-1),
        device_counts=counts,
        host_counts=np.stack([layers, ones, layers, ones, ones], axis=-1),
    )


def probe_cost(sample: Sample, machine: Machine) -> PassCost:
    """The pass that a sample timed, as the model prices it."""
    config: dict[str, object] = {key: sample.number(ours) for key, ours in DIMENSIONS}
    config |= {"model_type": "llama", "tie_word_embeddings": True, "rms_norm_eps": 1e-5}
    checkpoint = machine.as_run(
        Checkpoint(
            architecture=read_config(config, name="probe", source="calibration probe"),
            weight_format=weight_format(sample.text("format").removesuffix("-s32")),
        )
    )
    rows, context = sample.number("rows"), sample.number("context")
    return forward_pass(checkpoint, machine, rows=rows, context=context)


def unit_count(sample: Sample, bare: Machine, name: str) -> float:
    """How often a device constant occurs in a pass: what the pass gains when it is one second."""
    lifted = replace(bare, device=replace(bare.device, **{name: 1.0}))
    gain_s = probe_cost(sample, lifted).device_s - probe_cost(sample, bare).device_s
    return float(np.mean(gain_s))


def without_overheads(machine: Machine) -> Machine:
    """The machine with everything fitted here set to nothing; its kernel floor stays."""
    device = Device(
        kernel_s=machine.device.kernel_s, layer_s=0.0, element_s=0.0, pass_s=0.0, logit_s=0.0
    )
    host = Host(**dict.fromkeys(HOST_CONSTANTS, 0.0))
    return replace(machine, device=device, host=host)
