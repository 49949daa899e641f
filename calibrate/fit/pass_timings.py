"""Measured passes as equations in the unknown overheads.

A pass is linear in its overheads (and all but linear in what a batch reads again), so the count
of each is what the pass gains when that constant alone is one second: the cost model itself writes
the equations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import final

import numpy as np

from calibrate.probe_network import config_of
from calibrate.samples import Sample
from model.cost.forward import PassCost, begin_share, forward_pass
from model.machine.machine import Machine
from model.machine.overheads import Device, Host, Submission
from model.machine.profile import (
    APART_REREAD,
    DEVICE_CONSTANTS,
    MORE_ROWS,
    ONE_ROW,
    SCORE,
    WALK_SHARE,
)
from model.network.checkpoint import Checkpoint
from model.network.config import read_config
from model.network.weight_format import weight_format
from model.units import Array, Quantity

FITTED_DEVICE = tuple(name for name in DEVICE_CONSTANTS if name != "kernel_s")
PASS_MODES = ("build", "submit", "queued", "pipelined", "decode", "awaited", "growing")
"""The ways to run passes; :mod:`calibrate.fit.overheads` has their equations."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PassTimings:
    """Measured passes as arrays: what the products take, and how often each unknown occurs.

    `products_s` has one entry per timing, or (draws, timings) where the laws are drawn. The
    counts are of shape (timings, unknowns): in device time, in building, submitting, waiting for
    a result, and reading one that is there. `commit_shares` are of each pass (`PassCost`), and
    `walk` is the place of `walk_share` among the unknowns.
    """

    mode: tuple[str, ...]
    products_s: Array
    device_counts: Array
    build_counts: Array
    submit_counts: Array
    sync_counts: Array
    read_counts: Array
    commit_shares: Array
    walk: int | None

    def predict_s(self, unknowns: Array) -> Array:
        """Times of all timings for constants in the order of `unknown_names`."""
        build_s = self.build_counts @ unknowns
        submit_s = self.submit_counts @ unknowns
        device_s = self.products_s + self.device_counts @ unknowns
        busy_s = np.maximum(device_s, submit_s)
        shares = self.commit_shares
        begins_s = begin_share(shares, 0.0 if self.walk is None else unknowns[self.walk]) * submit_s
        committed_s = np.maximum(device_s + begins_s, submit_s + shares * device_s)
        waited_s = build_s + committed_s + self.sync_counts @ unknowns
        ways = {
            "build": np.broadcast_to(build_s, busy_s.shape),
            "submit": busy_s,
            "queued": np.broadcast_to(device_s, busy_s.shape),
            "pipelined": busy_s,
            "decode": np.maximum(device_s, build_s + submit_s + self.read_counts @ unknowns),
            "awaited": waited_s,
            "growing": waited_s,
        }
        return np.choose(
            [PASS_MODES.index(mode) for mode in self.mode], [ways[mode] for mode in PASS_MODES]
        )


def pass_timings(passes: Sequence[Sample], names: Sequence[str], machine: Machine) -> PassTimings:
    """What each measured pass consists of, on a machine whose overheads are taken out."""
    bare = without_overheads(machine)
    costs = [probe_cost(sample, bare) for sample in passes]
    counts = np.zeros((3, len(passes), len(names)))
    for column, name in enumerate(names):
        lifted = with_constants(bare, {name: 1.0})
        for row, (sample, cost) in enumerate(zip(passes, costs, strict=True)):
            # The context of all other probes stays as it was.
            if name == "reshape_s" and sample.text("mode") != "growing":
                continue
            gained = probe_cost(sample, lifted)
            counts[0, row, column] = float(gained.device_s - cost.device_s)
            counts[1, row, column] = float(gained.build_s - cost.build_s)
            counts[2, row, column] = float(gained.submit_s - cost.submit_s)
    waits, reads = (np.zeros((len(passes), len(names))) for _ in range(2))
    waits[:, names.index("sync_s")] = 1.0
    reads[:, names.index("read_s")] = 1.0
    return PassTimings(
        mode=tuple(sample.text("mode") for sample in passes),
        products_s=products_s(passes, bare),
        device_counts=counts[0],
        build_counts=counts[1],
        submit_counts=counts[2],
        sync_counts=waits,
        read_counts=reads,
        commit_shares=np.array([float(cost.commit_share) for cost in costs]),
        walk=names.index(WALK_SHARE) if WALK_SHARE in names else None,
    )


def products_s(passes: Sequence[Sample], machine: Machine) -> Array:
    """Device time of the products and kernel floors of each pass; the last axis is the timing."""
    bare = without_overheads(machine)
    times = [probe_cost(sample, bare).device_s for sample in passes]
    return np.stack(np.broadcast_arrays(*times), axis=-1)


def format_name(sample: Sample) -> str:
    """The weight format of a probe, as laws and submissions are keyed."""
    return sample.text("format").removesuffix("-s32")


def probe_cost(sample: Sample, machine: Machine) -> PassCost:
    """The pass that a sample timed, as the model prices it."""
    config = config_of(dict(sample.settings))
    checkpoint = machine.as_run(
        Checkpoint(
            architecture=read_config(config, name="probe", source="calibration probe"),
            weight_format=weight_format(format_name(sample)),
        )
    )
    rows, context = sample.number("rows"), sample.number("context")
    return forward_pass(
        checkpoint,
        machine,
        rows=rows,
        context=context,
        sequences=sample.number("sequences", 1),
        keys=None if sample.text("mode") == "growing" else context + rows,
    )


def with_constants(machine: Machine, values: Mapping[str, Quantity]) -> Machine:
    """The machine with overheads of these names set; other ones stay as they are."""
    device_names = {each.name for each in fields(Device)}
    host_names = {each.name for each in fields(Host)}
    device = {name: value for name, value in values.items() if name in device_names}
    host = {name: value for name, value in values.items() if name in host_names}
    submissions = dict(machine.submissions)
    for name in {name.partition(".")[0] for name in values if "." in name}:
        submissions[name] = Submission(
            one_row_s=values.get(f"{name}.{ONE_ROW}", 0.0),
            more_rows_s=values.get(f"{name}.{MORE_ROWS}", 0.0),
        )
    return replace(
        machine,
        device=replace(machine.device, **device),
        host=replace(machine.host, **host),
        submissions=submissions,
        apart_reread=values.get(APART_REREAD, machine.apart_reread),
    )


def without_overheads(machine: Machine) -> Machine:
    """The machine with everything fitted here set to nothing; what kernels alone told stays."""
    nothing = {each.name: 0.0 for each in fields(Device)}
    known = {name: getattr(machine.device, name) for name in ("kernel_s", SCORE)}
    device = Device(**nothing | known)
    host = Host(**{each.name: 0.0 for each in fields(Host)})
    return replace(machine, device=device, host=host, submissions={}, apart_reread=0.0)
