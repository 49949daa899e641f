"""What another MLX release changes for a target, in the words of `predict`."""

from __future__ import annotations

from typing import Any

from model.cost.forward import forward_pass
from model.machine.kernels.upgrade import KernelChange, upgrade
from model.machine.profile import Profile
from model.network.checkpoint import Checkpoint

ROWS = (2, 3, 5, 9, 17)
"""Rows of verify passes that are compared: drafts of 1, 2, 4, 8 and 16 tokens."""


def row_costs(target: Checkpoint, profile: Profile, context: float) -> dict[int, float]:
    """A pass of some rows in passes of one row, on the device alone."""
    machine = profile.machine
    one_s = float(forward_pass(target, machine, rows=1, context=context).device_s)
    return {
        rows: float(forward_pass(target, machine, rows=rows, context=context).device_s) / one_s
        for rows in ROWS
    }


def kernel_changes(target: Checkpoint, before: Profile, after: Profile) -> list[KernelChange]:
    """What changes for the target's largest dense matrix that is read at every pass."""
    layer, _, formats = target.layer_kinds[-1]
    matrix = max(layer.dense_matrices, key=lambda each: each.weights)
    return list(
        upgrade(
            before,
            after,
            formats[matrix.name],
            depth=matrix.depth,
            columns=matrix.columns,
        )
    )


def runtime_lines(target: Checkpoint, own: Profile, other: Profile, *, context: float) -> list[str]:
    """The two releases side by side, for a person; `own` is what the profile was made with."""
    costs = [row_costs(target, profile, context) for profile in (own, other)]
    names = [profile.header.runtime for profile in (own, other)]
    shown = "; ".join(
        f"{rows} rows {costs[1][rows]:.2f} against {costs[0][rows]:.2f}" for rows in ROWS
    )
    return [
        "",
        f"a pass in plain passes, {names[1]} against {names[0]}: {shown}",
        *(f"  {change}" for change in kernel_changes(target, own, other)),
    ]


def runtime_json(
    target: Checkpoint, own: Profile, other: Profile, *, context: float
) -> dict[str, Any]:
    """The same as data: costs of rows under both releases."""
    return {
        profile.header.runtime: {
            str(rows): cost for rows, cost in row_costs(target, profile, context).items()
        }
        for profile in (own, other)
    }
