"""What the README says of published runs is what `tokroof validate` prints."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import tokroof

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The shipped evidence, scored with the packaged profiles alone."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert tokroof.main(["validate", "--json"]) == 0
    return json.loads(printed.getvalue())


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


@pytest.mark.parametrize(
    ("group", "row"),
    [
        ("tokens_per_s, plain", "plain, nearly all of them in the fit"),
        ("tokens_per_s, batch", "batches"),
        ("speedup", "speedup of a strategy, its own progress given"),
    ],
)
def test_the_readme_says_what_validate_prints(
    document: dict[str, Any], group: str, row: str
) -> None:
    (found,) = (each for each in document["groups"] if each["group"] == group)
    cells = [
        row,
        f"{found['predicted']} of {found['n']}",
        percent(found["median_error"]),
        percent(found["p90_error"]),
        percent(found["coverage_90"], 0),
    ]
    assert f"| {' | '.join(cells)} |" in README


def test_every_shipped_row_is_answered_or_refused_with_a_reason(document: dict[str, Any]) -> None:
    rows = document["rows"]
    assert f"scores all {len(rows)} shipped rows" in README
    assert all((row["predicted"] is None) == (row["refused"] is not None) for row in rows)
    refused = sum(each["runs"] for each in document["refusals"])
    assert refused == sum(row["refused"] is not None for row in rows)
