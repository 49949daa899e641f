"""How long a draft was where a run does not say: what its engine drafts when nobody tells it.

mlx-lm's command line drafts `--num-draft-tokens` tokens, 2 from 2025-01-10 on and 3 since
2025-03-04 (`mlx_lm/generate.py`). dflash-mlx drafted what its drafter's block holds, one token
less than the block (`dflash_mlx/runtime.py`, 0.1.4.1); on 2026-05-11 it got a policy that shortens
blocks as it goes, and from then on its runs say nothing of a fixed length. No other engine is
known to have one number: LM Studio does not publish its own, mlx-dspark measures the best on each
Mac, and MTP servers change theirs from release to release.
"""

from __future__ import annotations

from calibrate.published.drafts import Draft
from calibrate.published.run_row import PublishedRun
from calibrate.published.runtimes import period_of

MLX_LM_SINCE = (("2025-03-04", 3), ("2025-01-10", 2))
"""Days from which mlx-lm drafts so many tokens, the newest first."""
WHOLE_BLOCKS_UNTIL = "2026-05-11"
VARIES = ("adaptive", "auto")
"""What a run says whose length changed as it went."""


def default_draft_length(run: PublishedRun, draft: Draft) -> int | None:
    """The documented length of a run's engine at its date; None where none is known."""
    said = f"{run.draft} {run.notes}".lower()
    period = period_of(run.date)
    if period is None or any(word in said for word in VARIES):
        return None
    first, last = period
    engine = run.runtime.lower()
    if engine.startswith(("mlx-lm", "mlx_lm")) and draft.head is None:
        since = [(day, length) for day, length in MLX_LM_SINCE if day <= last]
        return since[0][1] if since and since[0][0] <= first else None
    if engine.startswith("dflash-mlx") and draft.head is not None and last < WHOLE_BLOCKS_UNTIL:
        return draft.head.longest_draft
    return None
