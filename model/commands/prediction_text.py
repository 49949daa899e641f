"""Predictions and needs for a person to read in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from model.commands.progress_options import NO_ACCEPTANCE
from model.commands.strategy_builders import Answerable, Refused
from model.commands.table import table
from model.prediction.need import Need
from model.prediction.prediction import Prediction
from model.strategies.base import Settings
from model.units import MILLI


def prediction_lines(predictions: Sequence[Prediction]) -> list[str]:
    """Predictions as a table, the parts of their time, and what to be careful about."""
    if not predictions:
        return []
    rows = [
        [
            label(prediction),
            number(prediction.tokens_per_s, 1),
            span(prediction.interval_90, 1),
            number(prediction.speedup, 2),
            span(prediction.speedup_interval_90, 2),
            f"{prediction.tokens_per_pass:.2f}",
            prediction.bound.value,
            prediction.verdict,
        ]
        for prediction in predictions
    ]
    header = ["strategy", "tok/s", "90 %", "speedup", "90 %", "tok/pass", "bound", "verdict"]
    if any(each.sustained_tokens_per_s is not None for each in predictions):
        header.append("hot tok/s")
        for row, each in zip(rows, predictions, strict=True):
            row.append(number(each.sustained_tokens_per_s, 1))
    lines = [table(header, rows), ""]
    for prediction in predictions:
        parts = "  ".join(
            f"{name} {part_s / MILLI:.2f}" for name, part_s in prediction.parts_s if part_s > 0
        )
        lines.append(f"{label(prediction)}: {prediction.round_s / MILLI:.2f} ms = {parts}")
    lines += [
        f"{label(prediction)}: {prediction.memory.reason}"
        for prediction in predictions
        if not prediction.memory.fits
    ]
    lines += sorted({f"note: {warning}" for p in predictions for warning in p.warnings})
    return lines


def progress_lines(answers: Sequence[Answerable]) -> list[str]:
    """For each strategy whose progress was published: where, by how many, how far apart."""
    lines: list[str] = []
    for answer in answers:
        published = answer.published
        if published is None:
            continue
        spread = published.tokens_per_pass
        pairs = ", ".join(dict.fromkeys(row.target for row in published.rows))
        lines.append(
            f"{answer.strategy.name}: {spread.median:.2f} tokens per pass on {published.task}, "
            f"the median of {spread.pairs} published pairs ({spread.lowest:.2f} to "
            f"{spread.highest:.2f}): {pairs}; {', '.join(published.sources)}"
        )
        if published.extrapolated:
            longest = max(published.draft_lengths)
            lines.append(f"  none of them drafted more than {longest} tokens a round")
    return lines


def need_lines(needs: Sequence[Need]) -> list[str]:
    """For each strategy without progress: what it would need, and what it could give."""
    lines = ["", "without an acceptance, the acceptance that is needed:"] if needs else []
    for found in needs:
        lines.append(f"{described(found.strategy, found.settings)}: {need_text(found)}")
        if found.reason != NO_ACCEPTANCE:
            lines.append(f"  {found.reason}")
    return lines


def refused_lines(refused: Sequence[Refused]) -> list[str]:
    """The strategies that are left out, and why."""
    lines = ["", "left out:"] if refused else []
    return lines + [f"{each.strategy}: {each.reason}" for each in refused]


def need_text(found: Need) -> str:
    """One sentence: the break-even, and the speedups at three acceptances."""
    if not found.memory.fits:
        return found.memory.reason
    curve = {point.acceptance: point for point in found.curve}
    if found.needed_acceptance is None:
        best = max(found.curve, key=lambda point: point.speedup)
        return f"no acceptance wins; at best {best.speedup:.2f} of plain decoding"
    chosen = [curve[acceptance] for acceptance in (0.5, 0.7, 0.9)]
    points = "; ".join(
        f"{point.acceptance:g} gives {point.speedup:.2f} at k={point.draft_length}"
        for point in chosen
    )
    return f"wins from {found.needed_acceptance:.2f} (k={found.draft_length}); {points}"


def label(prediction: Prediction) -> str:
    """A strategy with what distinguishes it from others of its name."""
    return described(prediction.strategy, prediction.settings)


def described(strategy: str, settings: Settings) -> str:
    """A strategy and its settings in a few words.

    >>> described("layer-skip", {"skipped_attention": [3.0, 4.0], "skipped_mlp": [], "batch": 2})
    'layer-skip 2 attention 0 mlp B=2'
    """
    words = [strategy]
    words += [str(settings[name]) for name in ("model", "format", "head") if name in settings]
    for name, half in (("skipped_attention", "attention"), ("skipped_mlp", "mlp")):
        layers = settings.get(name)
        words += [f"{len(layers)} {half}"] if isinstance(layers, list) else []
    words += [f"B={settings['batch']}"] if "batch" in settings else []
    words += [f"k={settings['draft_length']}"] if "draft_length" in settings else []
    words += [f"beams={settings['beams']}"] if "beams" in settings else []
    return " ".join(words)


def number(value: float | None, digits: int) -> str:
    """A number as text; a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def span(interval: tuple[float, float] | None, digits: int) -> str:
    """An interval as text; a dash where there is none."""
    return "-" if interval is None else f"{interval[0]:.{digits}f}-{interval[1]:.{digits}f}"
