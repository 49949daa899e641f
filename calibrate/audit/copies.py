"""Rules on copies: numbers that agree to more digits than chance allows.

Rates of different machines, models or sources do not agree in eight digits by chance: among two
thousand rows (two million pairs) that happens once in fifty such tables. Rows of one setting from
one source are repeats or a sweep and are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from calibrate.audit.groups import model_key
from calibrate.audit.rounding import significant_digits
from calibrate.published.run_row import PublishedRun

CHANCE_DIGITS = 8


def measured(run: PublishedRun) -> dict[str, float]:
    """What was measured in a row, by column; a speedup follows from its rates and is left out."""
    found = {
        "prefill_tok_s": run.prefill_tokens_per_s,
        "decode_tok_s": run.decode_tokens_per_s,
        "baseline_tok_s": run.baseline_tokens_per_s,
        "tokens_per_pass": run.tokens_per_pass,
    }
    return {column: value for column, value in found.items() if value}


def copy_keys(run: PublishedRun) -> Iterator[tuple[object, ...]]:
    """Every two measurements that together show eight digits or more."""
    for (first, a), (second, b) in combinations(measured(run).items(), 2):
        if significant_digits(a) + significant_digits(b) >= CHANCE_DIGITS:
            yield first, a, second, b


def apart(run: PublishedRun, other: PublishedRun) -> bool:
    """Whether two rows claim to be different measurements."""
    mine = run.chip.lower(), model_key(run.target), run.quant, run.source
    return mine != (other.chip.lower(), model_key(other.target), other.quant, other.source)


def copied(run: PublishedRun, group: Sequence[PublishedRun]) -> str | None:
    """Two rows of different machines, models, formats or sources with the same numbers."""
    for other in group:
        if other is run or not apart(run, other):
            continue
        mine, theirs = measured(run), measured(other)
        shared = [column for column in mine if column in theirs]
        if all(mine[column] == theirs[column] for column in shared):
            return f"the same {' and '.join(shared)} as {other.id} ({described(other)})"
    return None


def altered_copy(run: PublishedRun, group: Sequence[PublishedRun]) -> str | None:
    """Two numbers to eight digits as in another row, and a third that is not."""
    for other in group:
        if other is run or not apart(run, other):
            continue
        mine, theirs = measured(run), measured(other)
        shared = [column for column in mine if column in theirs]
        same = [column for column in shared if mine[column] == theirs[column]]
        changed = [column for column in shared if column not in same]
        if changed:
            return (
                f"the same {' and '.join(same)} as {other.id} ({described(other)}), "
                f"but another {' and '.join(changed)}: a copy that was altered"
            )
    return None


def described(run: PublishedRun) -> str:
    """Machine, model and source in a few words."""
    return ", ".join(part for part in (run.chip, run.target, run.quant, run.source) if part)
