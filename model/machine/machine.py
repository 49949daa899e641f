"""A machine as the cost model sees it: row laws, what comes on top of products, and memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import final

import numpy as np

from model.errors import InputError
from model.machine.kernels.attention import (
    LibraryAttention,
    VectorAttention,
    is_unfused,
    leaves_scores,
)
from model.machine.kernels.dispatch import Dispatch
from model.machine.kernels.grouping import Grouping
from model.machine.overheads import FREE, Device, Host, Submission
from model.machine.row_law import Cut, RowLaw, Shape, shape_of
from model.network.checkpoint import Checkpoint
from model.network.weight_format import WeightFormat
from model.units import Quantity

# Where a class of shapes was not measured, the nearest one that was stands in for it.
STAND_INS = {
    Shape.SQUARE: (Shape.SQUARE, Shape.WIDE, Shape.TALL, Shape.HEAD),
    Shape.WIDE: (Shape.WIDE, Shape.SQUARE, Shape.HEAD, Shape.TALL),
    Shape.TALL: (Shape.TALL, Shape.SQUARE, Shape.WIDE, Shape.HEAD),
    Shape.HEAD: (Shape.HEAD, Shape.WIDE, Shape.SQUARE, Shape.TALL),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Machine:
    """One machine and runtime; every quantity is a number, or an array over draws of a fit.

    `laws` are keyed by weight format (a name, or the family of kernels that serves it) and
    shape, `submissions` by weight format. `attention` is the law whose matrix is the cache, and
    `two_pass_attention` that at contexts beyond `vector_attention.one_pass_to_context`, where it
    was measured apart, `unfused_attention` that where no one kernel attends (`unfused`), as a mean
    over contexts, and `aligned_attention` that over a multiple of `ALIGNED_KEYS` keys.
    `activation_bytes` is the size of an activation and of an entry of the cache.

    What the runtime decides is known where its tables cover the machine: `dispatch` says from
    which row a matrix is tiled, `vector_attention` how many query rows share the first kernel of
    attention, `grouping` when gathered experts share tiles (None: never). `sustained_share` is
    the share of its cold speed that remains after minutes of work.
    `apart_reread` is the share of the weights that each further sequence of a batch reads again
    where sequences are tiled apart. `kernels_per_commit` are submitted before the device begins
    with the first of them; 0 where that is not known.
    """

    name: str
    chip: str
    runtime: str
    memory_bytes: int
    recommended_working_set_bytes: int | None
    activation_bytes: int
    context_measured: int
    laws: Mapping[tuple[str, Shape], RowLaw]
    submissions: Mapping[str, Submission]
    attention: RowLaw
    device: Device
    host: Host
    two_pass_attention: RowLaw | None = None
    unfused_attention: RowLaw | None = None
    aligned_attention: RowLaw | None = None
    dispatch: Dispatch | None = None
    vector_attention: VectorAttention | None = None
    library_attention: LibraryAttention | None = None
    grouping: Grouping | None = None
    sustained_share: Quantity | None = None
    apart_reread: Quantity = 1.0
    kernels_per_commit: float = 0.0

    def law(
        self, weight_format: WeightFormat, *, depth: int, columns: int, widest: int | None = None
    ) -> RowLaw:
        """The row law of matrices of `depth` inputs that are priced as one of `columns` outputs.

        `widest` is the most columns that one of them has (all of `columns` if left out): the
        runtime chooses the row from which it tiles by the single matrix. A format that was not
        measured under its own name is served by one of the same kernels and bits in other groups,
        then by its whole family where a profile states one.

        Raises:
            InputError: nothing was measured for this format; a price would be made up.
        """
        return _law(self, weight_format, depth, columns, widest or columns)

    def experts_law(self, weight_format: WeightFormat, *, depth: int, columns: int) -> RowLaw:
        """The law that prices one (row, expert) pair, at one row, of gathered experts.

        Where gathered products were not measured, dense ones of the shape stand in for them.

        Raises:
            InputError: nothing was measured for this format.
        """
        return _experts_law(self, weight_format, depth, columns)

    def gathered_law(self, weight_format: WeightFormat) -> RowLaw | None:
        """The law of gathered experts, whose rows are pairs; None where they were not measured."""
        keys = ((key, Shape.EXPERT) for key in format_keys(weight_format))
        return next((self.laws[key] for key in keys if key in self.laws), None)

    def attention_law(self, *, query_heads_per_kv_head: int, head_dim: int) -> RowLaw:
        """The law of attention for these heads.

        A runtime with a vector kernel leaves it the sooner the more query heads share a key head;
        what follows is then priced by the law's next kernel. Other runtimes: `attention` itself.
        """
        return _attention_law(self, query_heads_per_kv_head, head_dim)

    def unfused(
        self, *, rows: Quantity, sequences: int, query_heads_per_kv_head: int, head_dim: int
    ) -> Quantity:
        """Whether no one kernel attends; not where `unfused_attention` was not measured."""
        return self.unfused_attention is not None and is_unfused(
            self.vector_attention,
            rows=rows,
            sequences=sequences,
            query_heads_per_kv_head=query_heads_per_kv_head,
            head_dim=head_dim,
        )

    @property
    def attention_rows_measured(self) -> int:
        """The most rows of one sequence that attention was timed with, by whatever kernels."""
        unfused = self.unfused_attention
        if not leaves_scores(self.vector_attention) or unfused is None:
            return self.attention.rows_measured
        return max(self.attention.rows_measured, unfused.rows_measured)

    def tiled_apart_from(self, weight_format: WeightFormat) -> int | None:
        """Rows of a batch from which its sequences are tiled apart; None where they share tiles."""
        return (
            None if self.dispatch is None else self.dispatch.tiled_apart_from(weight_format.family)
        )

    def sustained(self) -> Machine | None:
        """This machine after minutes of work; None where nobody says what remains.

        Rates are multiplied and device times divided by `sustained_share`. That is coarse: what
        was published is a loss of decoding speed, in which bandwidth and arithmetic are not told
        apart. The host is left as it is.
        """
        if self.sustained_share is None:
            return None
        share = np.minimum(self.sustained_share, 1.0)
        costs = {each.name: getattr(self.device, each.name) / share for each in fields(Device)}

        def sustained(law: RowLaw | None) -> RowLaw | None:
            return None if law is None else law.at_speed(share)

        return replace(
            self,
            laws={key: law.at_speed(share) for key, law in self.laws.items()},
            attention=self.attention.at_speed(share),
            two_pass_attention=sustained(self.two_pass_attention),
            unfused_attention=sustained(self.unfused_attention),
            aligned_attention=sustained(self.aligned_attention),
            device=Device(**costs),
            sustained_share=None,
        )

    def submission(self, weight_format: WeightFormat) -> Submission:
        """What submitting a product of this format costs the host; nothing if never measured."""
        keys = format_keys(weight_format)
        return next((self.submissions[key] for key in keys if key in self.submissions), FREE)

    def as_run(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint as this machine holds it: with 32-bit activations, all in 32 bits."""
        return checkpoint.in_float32() if self.activation_bytes == 4 else checkpoint


@lru_cache(maxsize=4096)
def _law(
    machine: Machine, weight_format: WeightFormat, depth: int, columns: int, widest: int
) -> RowLaw:
    shape = shape_of(depth=depth, columns=columns)
    law = _measured_law(machine, weight_format, STAND_INS[shape], columns)
    if machine.dispatch is not None and weight_format.family == "float":
        return law.with_cuts(_cuts(machine, machine.dispatch, depth, widest))
    limits = machine.dispatch.limits if machine.dispatch else None
    if limits is None:
        return law
    first_rows = [regime.first_row for regime in law.regimes[1:]]
    handed_over_at = next((row for row in first_rows if row in limits.all), None)
    if handed_over_at is None:
        return law
    return law.handed_over(handed_over_at, limits.of(depth=depth, columns=widest))


def _cuts(machine: Machine, dispatch: Dispatch, depth: int, columns: int) -> dict[int, Cut]:
    """How the kernels of 16-bit weights cut a matrix, by their first rows."""
    cores = 0 if dispatch.gpu is None else dispatch.gpu.cores
    return {
        use.first_row: Cut(
            tile_rows=use.kernel.tile_rows,
            effort=use.kernel.effort,
            fill_columns=use.kernel.busy_columns * cores,
            partial_sums=use.kernel.partial_sums(depth=depth, columns=columns),
            sum_s=machine.device.kernel_s,
        )
        for use in dispatch.kernels("float", depth=depth, columns=columns)
    }


@lru_cache(maxsize=1024)
def _experts_law(machine: Machine, weight_format: WeightFormat, depth: int, columns: int) -> RowLaw:
    gathered = machine.gathered_law(weight_format)
    if gathered is not None:
        return gathered
    shape = shape_of(depth=depth, columns=columns)
    return _measured_law(machine, weight_format, STAND_INS[shape], columns)


@lru_cache(maxsize=1024)
def _attention_law(machine: Machine, query_heads_per_kv_head: int, head_dim: int) -> RowLaw:
    vector, law = machine.vector_attention, machine.attention
    if vector is None or leaves_scores(vector):
        return law
    many = law.regime_at(vector.most_rows + 1)
    if many.first_row == 1:
        return law
    last_row = vector.last_row(query_heads_per_kv_head=query_heads_per_kv_head, head_dim=head_dim)
    # One row of other heads is a product of vectors, fused or not; only several rows change kind.
    return law.handed_over(many.first_row, max(last_row, 1) + 1)


def _measured_law(
    machine: Machine, weight_format: WeightFormat, stand_ins: Iterable[Shape], columns: int
) -> RowLaw:
    for key in format_keys(weight_format):
        found = [machine.laws[key, shape] for shape in stand_ins if (key, shape) in machine.laws]
        if found:
            # A class of which only wider matrices were timed says nothing of how a narrow one
            # leaves cores idle, which another class does.
            wide_enough = (law for law in found if law.least_columns <= columns)
            return next(wide_enough, found[0])
    name = weight_format.name.removesuffix("-s32")
    measured = ", ".join(sorted({key for key, _ in machine.laws}))
    raise InputError(
        f"format {name}",
        f"was never measured on {machine.name}",
        f"measured: {measured}; or run `tokroof calibrate --formats {name}`",
    )


def format_keys(weight_format: WeightFormat) -> list[str]:
    """The names under which a format may have been measured, the closest first."""
    name = weight_format.name.removesuffix("-s32")
    bits = [f"{weight_format.bits}bit"] if weight_format.family == "affine" else []
    return [name, *bits, weight_format.family]
