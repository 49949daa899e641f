"""Plans as rows of charts: layers to skip, and answers to denoise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dashboard.rows.place import placed
from model.commands.planned import Asked
from model.planners.diffusion import DiffusionCell
from model.planners.layer_skip import SkipCell


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SkipRow:
    """A share of skipped layers with a draft length, as `tokroof plan layer-skip` has it.

    `needed_acceptance` is None where no acceptance wins; `acceptance` and `speedup` are None where
    nothing was measured for the share.
    """

    skipped_percent: float
    draft_length: int
    needed_acceptance: float | None
    speedup_at_most: float
    acceptance: float | None
    speedup: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionRow:
    """An answer length with the tokens that a pass fixes, as `tokroof plan diffusion` has it."""

    answer_tokens: int
    committed_per_pass: float
    tokens_per_pass: float
    passes: float
    tokens_per_s: float
    rival_tokens_per_s: float
    needed_per_pass: float
    speedup: float


def skip_rows(cells: Sequence[SkipCell]) -> tuple[SkipRow, ...]:
    """One row for each cell."""
    return tuple(
        SkipRow(
            skipped_percent=100.0 * cell.skip_fraction,
            draft_length=cell.draft_length,
            needed_acceptance=cell.needed_acceptance,
            speedup_at_most=cell.speedup_at_most,
            acceptance=cell.acceptance,
            speedup=cell.speedup,
        )
        for cell in cells
    )


def diffusion_rows(cells: Sequence[DiffusionCell]) -> tuple[DiffusionRow, ...]:
    """One row for each cell."""
    return tuple(
        DiffusionRow(
            answer_tokens=cell.answer_tokens,
            committed_per_pass=cell.committed_per_pass,
            tokens_per_pass=cell.tokens_per_pass,
            passes=cell.passes,
            tokens_per_s=cell.tokens_per_s,
            rival_tokens_per_s=cell.rival_tokens_per_s,
            needed_per_pass=cell.needed_per_pass,
            speedup=cell.tokens_per_s / cell.rival_tokens_per_s,
        )
        for cell in cells
    )


def planned_for(about: Asked) -> str:
    """What was planned and where, and what the constants rest on."""
    where = placed(about.choice.profile, about.target, about.context)
    return f"{where}; estimates without intervals, which `tokroof predict` gives"
