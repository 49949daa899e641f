"""The length of a draft that nobody stated: documented for an engine and a date, or nothing."""

from __future__ import annotations

import pytest

from calibrate.published.defaults import default_draft_length
from calibrate.published.names import draft_of, target_of
from calibrate.published.refusal import Refusal
from tests.calibrate.published.published_run import SPECULATIVE, published

DFLASH = {"runtime": "dflash-mlx", "target_model": "Qwen3-8B", "draft_model": "DFlash head"}


@pytest.mark.parametrize(
    ("changed", "length"),
    [
        ({"runtime": "mlx-lm", "date": "2026-08-01"}, 3),
        ({"runtime": "mlx_lm 0.31", "date": "2025-03-04"}, 3),
        ({"runtime": "mlx-lm", "date": "2025-02-13"}, 2),
        ({"runtime": "mlx-lm", "date": "2025-03"}, None),  # before the change or after?
        ({"runtime": "mlx-lm", "date": "2024-12-01"}, None),
        ({"runtime": "mlx-lm", "date": ""}, None),
        ({"runtime": "LM Studio mlx-engine", "date": "2025-05-01"}, None),
        ({"runtime": "mlx-lm", "date": "2026-08-01", "notes": "k: adaptive"}, None),
        (DFLASH | {"date": "2026-04-20"}, 15),
        (DFLASH | {"date": "2026-05-24"}, None),
        (DFLASH | {"date": "2026-05"}, None),
    ],
)
def test_what_an_engine_drafts_by_itself(changed: dict[str, str], length: int | None) -> None:
    run = published(SPECULATIVE | changed, k="")
    target = target_of(run)
    assert not isinstance(target, Refusal)
    draft = draft_of(run, target)
    assert not isinstance(draft, Refusal)
    assert default_draft_length(run, draft) == length
