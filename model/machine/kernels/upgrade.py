"""What another release of MLX changes for one matrix: which rows, which kernels, at what cost."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import final

from model.machine.kernels.dispatch import KernelUse, size_class
from model.machine.kernels.runtime_change import tabled
from model.machine.machine import Machine
from model.machine.profile import Profile
from model.machine.row_law import Product
from model.network.weight_format import WeightFormat

MOST_ROWS = 64
"""Rows looked at: beyond one tile of the largest kernel nothing but repetition follows."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChange:
    """Rows of a matrix that another kernel serves.

    `before_costs` and `after_costs` have one entry for each row from `first_row` to `last_row`:
    the time of the product in products of one row of the same release.
    """

    family: str
    size: str
    first_row: int
    last_row: int
    before: str
    after: str
    before_costs: tuple[float, ...]
    after_costs: tuple[float, ...]

    @property
    def cost_ratios(self) -> tuple[float, ...]:
        """What a product costs after the change as a multiple of before, for each row."""
        pairs = zip(self.before_costs, self.after_costs, strict=True)
        return tuple(after / before for before, after in pairs)

    def __str__(self) -> str:
        """One line for a person."""
        low, high = min(self.cost_ratios), max(self.cost_ratios)
        times = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
        rows = (
            f"{self.first_row}"
            if self.first_row == self.last_row
            else (f"{self.first_row} to {self.last_row}")
        )
        return (
            f"{self.family}, {self.size} matrix, {rows} rows: {self.before} -> {self.after}, "
            f"{times} of the time"
        )


def upgrade(
    before: Profile, after: Profile, weight_format: WeightFormat, *, depth: int, columns: int
) -> tuple[KernelChange, ...]:
    """Where one matrix changes its kernel between two releases on one machine, by rows.

    `before` and `after` are profiles of one machine under two runtimes, as
    :func:`model.machine.kernels.runtime_change.as_runtime` makes them. No change is an empty
    answer.

    Raises:
        InputError: the tables do not cover a runtime, or the format was never measured.
    """
    family = weight_format.family
    uses = [
        tabled(profile.header, profile.header.runtime).kernels(family, depth=depth, columns=columns)
        for profile in (before, after)
    ]
    product = Product(
        read_bytes=weight_format.matrix_bytes(columns, depth), depth=depth, columns=columns
    )
    costs = [
        costs_in_products(profile.machine, weight_format, product) for profile in (before, after)
    ]

    def kernels(row: int) -> tuple[str, str]:
        return kernel_at(uses[0], row), kernel_at(uses[1], row)

    changes: list[KernelChange] = []
    for (old, new), group in groupby(range(1, MOST_ROWS + 1), key=kernels):
        rows = list(group)
        if old != new:
            changes.append(
                KernelChange(
                    family=family,
                    size=size_class(depth=depth, columns=columns),
                    first_row=rows[0],
                    last_row=rows[-1],
                    before=old,
                    after=new,
                    before_costs=tuple(costs[0][row - 1] for row in rows),
                    after_costs=tuple(costs[1][row - 1] for row in rows),
                )
            )
    return tuple(changes)


def kernel_at(uses: tuple[KernelUse, ...], row: int) -> str:
    """The name of the kernel that serves so many rows."""
    return [use.kernel.name for use in uses if use.first_row <= row][-1]


def costs_in_products(
    machine: Machine, weight_format: WeightFormat, product: Product
) -> tuple[float, ...]:
    """What 1 to `MOST_ROWS` rows cost, in products of one row."""
    depth, columns = int(product.depth), int(product.columns)
    law = machine.law(weight_format, depth=depth, columns=columns)
    seconds = [float(law.time(product, rows).total_s) for rows in range(1, MOST_ROWS + 1)]
    return tuple(each / seconds[0] for each in seconds)
