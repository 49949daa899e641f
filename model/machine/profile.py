"""A machine profile: the constants of one machine and runtime, as a JSON file.

The file holds the *structure* of the row laws (which kernel from which row on) and, apart from
it, the *constants* by name, each with value, standard error, unit, origin and draws:

    {"schema": 1, "name": ..., "laws": [{"format": "4bit", "shape": "wide", "overlap": 2.0,
     "rows_measured": 64, "regimes": [{"first_row": 1, "tile_rows": 1.0, ...}]}],
     "attention": {...}, "unfused_attention": null, "constants": {"kernel_s": {...},
     "4bit.wide.1.bandwidth_bytes_per_s": {...}}, "environment": {...}, "samples": [...]}

A header may state `gpu`, from which the tables of MLX's kernels say what depends on the size of a
matrix and what another release changes; without it a profile prices what it was measured with. It
may state `several_rows_residual_log` too, which is 0 if left out, `two_pass_attention`,
`unfused_attention` and `aligned_attention`. A regime without a constant for its bandwidth (or rate)
is not bound by it within what was measured. `tile_rows` null is one tile for any rows, `overlap`
null is perfect overlap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from model.machine.constant import Constant, Origin
from model.machine.kernels.attention import library_attention, vector_attention
from model.machine.kernels.commits import kernels_per_commit
from model.machine.kernels.dispatch import dispatch_of
from model.machine.kernels.gpu import Gpu
from model.machine.kernels.grouping import grouping
from model.machine.machine import Machine
from model.machine.overheads import Device, Host, Submission
from model.machine.row_law import Regime, RowLaw, Shape
from model.units import Quantity

SCHEMA = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeForm:
    """A kernel without its rates."""

    first_row: int
    tile_rows: float | None
    pads: bool
    reread: float
    fill_columns: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LawForm:
    """A row law without its rates.

    Attention has no format, and no shape, TWO_PASS beyond the contexts of one, or UNFUSED where no
    one kernel attends, and ALIGNED the same over keys that are aligned best.
    """

    format: str
    shape: str
    overlap: float | None
    rows_measured: int
    regimes: tuple[RegimeForm, ...]
    least_columns: int = 0
    depth_power: float = 1.0

    @property
    def name(self) -> str:
        """The first part of the names of its constants."""
        if self.format:
            return f"{self.format}.{self.shape}"
        return f"{self.shape}.attention" if self.shape else "attention"

    def assemble(self, values: Mapping[str, Quantity]) -> RowLaw:
        """The law with rates from `values`; a rate that is not there does not bind."""

        def regime(form: RegimeForm) -> Regime:
            prefix = f"{self.name}.{form.first_row}."
            return Regime(
                first_row=form.first_row,
                tile_rows=math.inf if form.tile_rows is None else form.tile_rows,
                pads=form.pads,
                bandwidth_bytes_per_s=values.get(prefix + "bandwidth_bytes_per_s", math.inf),
                flops_per_s=values.get(prefix + "flops_per_s", math.inf),
                reread=form.reread,
                fill_columns=form.fill_columns,
            )

        return RowLaw(
            overlap=math.inf if self.overlap is None else self.overlap,
            rows_measured=self.rows_measured,
            regimes=tuple(regime(form) for form in self.regimes),
            least_columns=self.least_columns,
            depth_power=self.depth_power,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a profile says of a machine beside its constants.

    `residual_log` is the relative scatter that the fit left on whole passes, and
    `several_rows_residual_log` what passes of several rows stray on top of that: 0 where they were
    measured. `gpu` is what MLX knows of an Apple GPU.
    """

    name: str
    chip: str
    device: str
    runtime: str
    created: str
    memory_bytes: int
    recommended_working_set_bytes: int | None
    activation_bytes: int
    context_measured: int
    residual_log: float
    laws: tuple[LawForm, ...]
    attention: LawForm
    two_pass_attention: LawForm | None = None
    unfused_attention: LawForm | None = None
    aligned_attention: LawForm | None = None
    gpu: Gpu | None = None
    several_rows_residual_log: float = 0.0

    @property
    def all_laws(self) -> tuple[LawForm, ...]:
        """Every law that has constants."""
        special = (self.two_pass_attention, self.unfused_attention, self.aligned_attention)
        return (*self.laws, self.attention, *(law for law in special if law is not None))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """A machine with its uncertainty.

    `environment` and `samples` are evidence, kept as they were written.
    """

    header: Header
    constants: Mapping[str, Constant]
    environment: Mapping[str, Any]
    samples: tuple[Mapping[str, Any], ...]

    @property
    def mlx_variables(self) -> dict[str, str]:
        """The environment variables of MLX's process; those of published runs are not stated."""
        return dict(self.environment.get("mlx_variables", ()))

    @cached_property
    def machine(self) -> Machine:
        """The machine at the fitted constants."""
        return self._assemble(lambda constant: constant.value)

    @cached_property
    def sampled_machine(self) -> Machine:
        """The machine with an array over draws in place of each constant."""
        return self._assemble(lambda constant: constant.draws)

    @cached_property
    def hot_machine(self) -> Machine | None:
        """The machine after minutes of work; None where nobody says what remains."""
        return self.machine.sustained()

    @cached_property
    def sampled_hot_machine(self) -> Machine | None:
        """The same with an array over draws in place of each constant."""
        return self.sampled_machine.sustained()

    @property
    def origin(self) -> Origin:
        """Where the weakest of its constants comes from."""
        return max(constant.origin for constant in self.constants.values())

    @property
    def origins_text(self) -> str:
        """How many constants come from where, strongest first: "41 measured, 9 prior"."""
        counts = Counter(constant.origin for constant in self.constants.values())
        return ", ".join(f"{counts[origin]} {origin.label}" for origin in sorted(counts))

    def _assemble(self, pick: Callable[[Constant], Quantity]) -> Machine:
        values = {name: pick(constant) for name, constant in self.constants.items()}
        header = self.header

        def assembled(law: LawForm | None) -> RowLaw | None:
            return None if law is None else law.assemble(values)

        return Machine(
            name=header.name,
            chip=header.chip,
            runtime=header.runtime,
            memory_bytes=header.memory_bytes,
            recommended_working_set_bytes=header.recommended_working_set_bytes,
            activation_bytes=header.activation_bytes,
            context_measured=header.context_measured,
            laws={(law.format, Shape(law.shape)): law.assemble(values) for law in header.laws},
            submissions={
                name: Submission(
                    one_row_s=values[f"{name}.{ONE_ROW}"],
                    more_rows_s=values[f"{name}.{MORE_ROWS}"],
                )
                for name in sorted({law.format for law in header.laws})
                if f"{name}.{ONE_ROW}" in values and f"{name}.{MORE_ROWS}" in values
            },
            attention=header.attention.assemble(values),
            device=Device(
                **{name: values[name] for name in DEVICE_CONSTANTS},
                **{name: values[name] for name in LAYER_CONSTANTS if name in values},
            ),
            host=Host(
                **{name: values[name] for name in HOST_CONSTANTS},
                **{name: values[name] for name in HOST_LAYER_CONSTANTS if name in values},
            ),
            two_pass_attention=assembled(header.two_pass_attention),
            unfused_attention=assembled(header.unfused_attention),
            aligned_attention=assembled(header.aligned_attention),
            dispatch=dispatch_of(header.device, header.runtime, header.gpu),
            vector_attention=vector_attention(header.device, header.runtime, self.mlx_variables),
            library_attention=library_attention(header.device, header.runtime, self.mlx_variables),
            grouping=grouping(header.device, header.runtime),
            sustained_share=values.get(SUSTAINED_SHARE),
            kernels_per_commit=kernels_per_commit(
                header.device,
                header.runtime,
                str(self.environment.get("architecture", "")),
                self.mlx_variables,
            ),
            apart_reread=np.minimum(values.get(APART_REREAD, 1.0), 1.0),
        )


DEVICE_CONSTANTS = (
    "kernel_s",
    "layer_s",
    "more_rows_layer_s",
    "element_s",
    "pass_s",
    "logit_s",
)
HOST_CONSTANTS = (
    "build_layer_s",
    "build_pass_s",
    "submit_layer_s",
    "submit_pass_s",
    "sync_s",
    "reshape_s",
)
WALK_SHARE = "walk_share"
"""What of submitting comes before the first kernel (`Host.walk_share`)."""
SCORE = "score_s"
LAYER_CONSTANTS = (
    "experts_layer_s",
    "recurrent_layer_s",
    "norm_s",
    "head_norm_s",
    "batch_layer_s",
    "unfused_layer_s",
    SCORE,
)
"""What some kinds of layers cost the device on top; a profile may leave them out."""
HOST_LAYER_CONSTANTS = (
    WALK_SHARE,
    "read_s",
    "submit_more_rows_layer_s",
    "build_experts_layer_s",
    "submit_experts_layer_s",
    "build_norm_s",
    "submit_norm_s",
    "build_batch_layer_s",
    "submit_batch_layer_s",
    "build_unfused_layer_s",
    "submit_unfused_layer_s",
    "submit_library_attention_s",
)
"""What reading a token, and some kinds of layers, cost the host on top; they may be left out."""
TWO_PASS, UNFUSED, ALIGNED = "two_pass", "unfused", "aligned"
APART_REREAD = "apart_reread"
"""What a further sequence of a batch reads again (`Machine.apart_reread`); may be left out."""
ONE_ROW, MORE_ROWS = "submit_one_row_s", "submit_more_rows_s"
"""Ends of the names of a format's submission constants."""
SUSTAINED_SHARE = "sustained_share"
"""The share of cold speed that remains after minutes of work; a profile may leave it out."""


def seeded_draws(value: float, stderr: float, *, count: int, seed: int) -> np.ndarray:
    """Draws of a constant that is stated with a standard error only: log-normal about its value."""
    if value <= 0.0 or stderr <= 0.0:
        return np.full(count, value)
    # log(1 + (stderr / value)^2), of any two positive numbers
    spread_log = math.sqrt(np.logaddexp(0.0, 2.0 * (math.log(stderr) - math.log(value))))
    normal = np.random.default_rng(seed).standard_normal(count)
    return value * np.exp(spread_log * normal)
