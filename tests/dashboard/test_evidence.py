"""The evidence says what `tokroof validate` says, of the shipped runs and of one's own."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import tokroof
from calibrate.comparison import SPEEDUP
from calibrate.repeats import fastest
from calibrate.run_file import read_runs
from calibrate.validation.which_runs import FILTERS
from dashboard.figures.evidence import EvidenceSettings, errors, evidence
from dashboard.rows.evidence import YOURS, source_link
from dashboard.rows.own_runs import OF_A_RECORD, passes
from dashboard.selection import Selection
from dashboard.uploads import kept_runs
from model.errors import InputError
from tests.calibrate.published.published_run import PLAIN, SPECULATIVE

ROOT = Path(__file__).parent.parent.parent
RUNS = ROOT / "calibrate" / "data" / "runs" / "h200-mlx-0.32.4.jsonl"
ULTRA = EvidenceSettings(where=(("chip", "M3 Ultra 60-core"),))
FEW = EvidenceSettings(where=(("chip", "M3 Pro 14-core"),))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert tokroof.main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "settings",
    [ULTRA, EvidenceSettings(quantity=SPEEDUP, where=(("chip", "M4 Pro 20-core"),))],
)
def test_every_number_is_the_command_line_s(
    settings: EvidenceSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = evidence(Selection(), settings)
    document = printed(capsys, *shlex.split(figure.command.text)[1:])
    shown = [(row.id, row.predicted, row.measured, row.refused or None) for row in figure.rows]
    assert shown == [
        (row["id"], row["predicted"], row["measured"], row["refused"]) for row in document["rows"]
    ]
    groups = {group["group"]: group for group in document["groups"]}
    [group] = errors(Selection(), settings).rows
    same = groups[f"{settings.quantity}, chip {group.label}"]
    assert group.median_percent == 100 * same["median_error"]
    assert group.p90_percent == 100 * same["p90_error"]
    assert group.covered_percent == 100 * same["coverage_90"]
    assert f"{100 * same['median_error']:.1f} %" in figure.sentence
    assert f"{same['refused']} of {same['n']} runs are refused" in figure.sentence or (
        not same["refused"]
    )


def test_groups_part_the_predicted_runs() -> None:
    settings = EvidenceSettings(where=(("runtime", "mlx-0.31"),), by="chip")
    rows = evidence(Selection(), settings).rows
    groups = errors(Selection(), settings).rows
    assert sum(group.runs for group in groups) <= len(rows)
    assert sum(group.predicted for group in groups) == sum(
        row.predicted is not None for row in rows
    )


def test_runs_of_the_fit_are_told_apart() -> None:
    rows = evidence(Selection(), ULTRA).rows
    assert {row.fit for row in rows} <= {"in the fit", "not in the fit"}
    assert any(row.fit == "in the fit" for row in rows)


def test_own_records_are_laid_over_the_published_runs(capsys: pytest.CaptureFixture[str]) -> None:
    own = kept_runs(RUNS.read_bytes(), "mine.jsonl")
    everything = EvidenceSettings(own=own)
    figure = evidence(Selection(machine="h200-mlx-0.32.4"), everything)
    mine = [row for row in figure.rows if row.whose == YOURS]
    document = printed(capsys, "validate", str(RUNS), "--machine", "h200-mlx-0.32.4")
    expected = [row for row in document["rows"] if row["quantity"] == "tokens_per_s"]
    assert [(row.predicted, row.measured) for row in mine] == [
        (row["predicted"], row["measured"]) for row in expected
    ]
    assert figure.cautions[0].startswith("mine.jsonl: ")
    # What is said of the shipped runs is not changed by one's own.
    assert figure.sentence == evidence(Selection(), EvidenceSettings()).sentence


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("strategy", "plain", "strategy"),
        ("strategy", "speculative", "strategy"),
        ("model", "qwen3-1.7b", "target"),
        ("runtime", "mlx-0.32-cuda", "all"),
        ("runtime", "mlx-0.32", "none"),
        ("chip", "M3 Pro 14-core", "none"),
        ("trust", "high", "all"),
    ],
)
def test_own_records_pass_the_filters_of_published_runs(name: str, value: str, kept: str) -> None:
    own = kept_runs(RUNS.read_bytes(), "mine.jsonl")
    settings = EvidenceSettings(where=((name, value),), own=own)
    figure = evidence(Selection(machine="h200-mlx-0.32.4"), settings)
    runs = {run.id: run for run in fastest(read_runs(RUNS))}
    shown = {row.id for row in figure.rows if row.whose == YOURS}
    expected = {
        each for each, run in runs.items() if kept == "all" or getattr(run, kept, None) == value
    }
    assert shown == expected
    assert len(shown) > 5 or kept == "none"
    hidden = len(runs) - len(shown)
    assert (f"hides {hidden} more" in figure.cautions[0]) is bool(hidden)


def test_a_record_of_a_mac_is_called_as_published_ones_are() -> None:
    mac = replace(read_runs(RUNS)[0], strategy="prompt-lookup", draft_length=2, ngram=3)
    environment = replace(mac.environment, device="metal", chip="Apple M3 Max", gpu_cores=40)
    mac = replace(mac, environment=environment)
    assert passes(mac, (("chip", "M3 Max 40-core"), ("strategy", "ngram")))
    assert passes(mac, (("runtime", "mlx-0.32"),))
    assert not passes(mac, (("chip", "M3 Max 30-core"),))


def test_every_filter_can_be_asked_of_a_record() -> None:
    assert set(OF_A_RECORD) == set(FILTERS) - {"quantity"}


def test_an_own_table_is_laid_over_too() -> None:
    lines = "".join(json.dumps(row) + "\n" for row in (PLAIN, SPECULATIVE | {"id": "X2"}))
    own = kept_runs(lines.encode(), "mine.csv")
    figure = evidence(Selection(), EvidenceSettings(own=own))
    assert [row.id for row in figure.rows if row.whose == YOURS] == ["X1"]
    elsewhere = evidence(Selection(), EvidenceSettings(where=FEW.where, own=own))
    assert not [row.id for row in elsewhere.rows if row.whose == YOURS]
    assert "no run of this quantity passes the filter" in elsewhere.cautions[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "mine.csv"),
        (b"id,chip\n1,M1\n", "mine.csv, row 1: has no column runtime"),
        (b'{"target_model": 1}\n', "mine.csv, row 1: has no column id"),
        (b'{"a": 1}\n', "mine.csv:1"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"x" * 11_000_000, "give a file of at most 10 MB"),
    ],
)
def test_a_file_that_is_none_of_runs_is_one_message(content: bytes, says: str) -> None:
    with pytest.raises(InputError) as refused:
        kept_runs(content, "mine.csv")
    assert says in str(refused.value)
    assert "/tmp" not in str(refused.value)


def test_too_many_own_runs_are_sent_to_the_command_line() -> None:
    lines = "".join(json.dumps(PLAIN | {"id": str(i)}) + "\n" for i in range(5001))
    with pytest.raises(InputError, match="has more than 5000 runs"):
        kept_runs(lines.encode(), "mine.jsonl")


@pytest.mark.parametrize(
    ("source", "link"),
    [
        ("github:lablup/mlxcel", "https://github.com/lablup/mlxcel"),
        ("github:a/b@7faacd02 x/y.md", "https://github.com/a/b/tree/7faacd02"),
        ("https://example.org/a b", "https://example.org/a"),
        ("javascript:alert(1)", ""),
        ("the article", ""),
        ("", ""),
    ],
)
def test_a_source_becomes_a_link_only_where_it_is_one(source: str, link: str) -> None:
    assert source_link(source) == link


def opened(**settings: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=60)
    for key, value in settings.items():
        app.query_params[key] = value
    return app.run().switch_page("views/evidence.py").run()


def test_the_view_opens_on_what_the_address_filters() -> None:
    app = opened(of_chip="M3 Pro 14-core", of_trust="nonsense")
    assert not app.exception
    assert not app.error
    assert app.header[0].value.startswith("Evidence")
    assert app.markdown[0].value == evidence(Selection(), FEW).sentence
    assert len(app.get("vega_lite_chart")) == 2
    assert len(app.dataframe) == 1


def test_filters_that_leave_nothing_are_one_message() -> None:
    app = opened(of_chip="M3 Pro 14-core", of_strategy="mtp")
    assert not app.exception
    [message] = app.error
    assert "leaves no run" in message.value


def test_a_target_that_does_not_fit_does_not_hide_the_evidence() -> None:
    app = opened(of_chip="M3 Pro 14-core", target="llama-3.1-70b")
    assert not app.exception
    assert not app.error
