"""`articles`: one claim or all of them, as text and as JSON, on any machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tokroof
from model.articles.registry import CLAIMS
from model.catalog import packaged_profile_text

CLAIM_KEYS = {
    "id",
    "title",
    "article",
    "setting",
    "published",
    "predicted",
    "verdict",
    "explanation",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path))
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert tokroof.main(["articles", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert tokroof.main(["articles", *arguments]) == 0
    return capsys.readouterr().out


def test_all_claims_in_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(capsys)
    assert document.keys() == {"machine", "runtimes", "origin", "claims", "unanswered"}
    assert [claim["id"] for claim in document["claims"]] == list(CLAIMS)
    assert document["unanswered"] == []
    assert document["machine"] == "m3-10core-16gb"
    for claim in document["claims"]:
        assert claim.keys() == CLAIM_KEYS
        for panel in claim["predicted"]:
            for figure in panel["figures"]:
                assert figure.keys() == {"case", "name", "value", "interval_90", "word"}


@pytest.mark.parametrize("name", CLAIMS)
def test_one_claim_is_that_of_all(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, name)
    assert text.count("\n== ") + text.startswith("== ") == 1
    assert f"[{name}]" in text
    document = answer(capsys, name)
    assert [claim["id"] for claim in document["claims"]] == [name]
    assert f"\n{document['claims'][0]['verdict'].upper()}. " in text


def test_the_text_is_as_wide_as_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(map(len, shown(capsys).splitlines())) <= 120


def test_another_machine_has_no_contrast_and_its_own_runtime(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = shown(capsys, "five-tokens", "--machine", "h200-mlx-0.32.4")
    assert "NVIDIA H200" in text
    assert "Apple" not in text


def test_a_machine_that_was_measured_with_one_format_says_what_it_lacks(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = json.loads(packaged_profile_text("m3-10core-16gb"))
    profile["laws"] = [law for law in profile["laws"] if law["format"] == "affine"]
    path = home / "affine.json"
    path.write_text(json.dumps(profile))
    document = answer(capsys, "--machine", str(path))
    unanswered = {each["id"]: each["reason"] for each in document["unanswered"]}
    assert unanswered.keys() == {"five-tokens", "draft-length", "diffusion"}
    assert "bf16" in unanswered["five-tokens"]
    assert "[five-tokens] cannot tell: " in shown(capsys, "--machine", str(path))
    assert tokroof.main(["articles", "five-tokens", "--machine", str(path)]) == 2


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["five-token"], "did you mean five-tokens"),
        (["fewer-bits", "--machine", "m3-10core"], "did you mean m3-10core-16gb"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokroof.main(["articles", *arguments]) == 2
    refused = capsys.readouterr()
    assert line in refused.err
    assert refused.err.count("\n") == 1
    assert refused.out == ""
