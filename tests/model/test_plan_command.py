"""`plan`: its three tricks agree with `predict`, and each refuses the settings of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tokroof

LAYERS = ["plan", "layer-skip", "llama-3.1-8b", "--format", "4bit"]
SUBLAYERS = ["plan", "sublayers", "llama-3.1-8b", "--format", "4bit"]
LLADA = ["plan", "diffusion", "llada-8b", "--format", "4bit"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path))
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert tokroof.main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_cell_of_layer_skipping_is_what_predict_needs_and_gives(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = ["--fractions", "0.5", "--draft-lengths", "2", "--measured", "0.25=0.9,0.5=0.8"]
    (cell,) = answer(capsys, *LAYERS, *settings)["plan"]
    asked = ["predict", *LAYERS[2:], "--strategy", "layer-skip"]
    asked += ["--skip", "0.5", "--draft-length", "2"]
    (needed,) = answer(capsys, *asked)["needs"]
    assert cell["needed_acceptance"] == pytest.approx(needed["needed_acceptance"], rel=1e-9)
    assert cell["acceptance"] == pytest.approx(0.8)
    (given,) = answer(capsys, *asked, "--acceptance", str(cell["acceptance"]))["predictions"]
    assert cell["speedup"] == pytest.approx(given["speedup"], rel=1e-9)


def test_a_cell_of_diffusion_is_what_predict_gives(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--block", "32", "--committed", "4.4", "--block-cache"]
    (cell,) = answer(capsys, *LLADA, "--answers", "64", *settings)["plan"]
    asked = ["predict", *LLADA[2:], "--strategy", "diffusion", "--answer", "64", *settings]
    (given,) = answer(capsys, *asked)["predictions"]
    assert cell["tokens_per_s"] == pytest.approx(given["tokens_per_s"], rel=1e-9)
    speedup = cell["tokens_per_s"] / cell["rival_tokens_per_s"]
    assert speedup == pytest.approx(given["speedup"], rel=1e-9)


def test_a_rival_may_be_the_target_in_another_format(capsys: pytest.CaptureFixture[str]) -> None:
    rates = [
        answer(capsys, *LLADA, *rival)["plan"][0]["rival_tokens_per_s"]
        for rival in ([], ["--rival-format", "8bit"], ["--rival", "llada-8b"])
    ]
    assert rates[1] < rates[0] == rates[2]


def test_sublayers_are_planned_from_factors(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factors = [
        {"layer": layer, "half": half, "acceptance_factor": 1.0}
        for layer in range(32)
        for half in ("attention", "mlp")
    ]
    path = home / "factors.json"
    path.write_text(json.dumps(factors))
    (row,) = answer(capsys, *SUBLAYERS, "--factors", str(path), "--draft-lengths", "2")["plan"]
    assert row["skipped"]["mlp"]
    assert row["speedup"] > 1.0
    assert tokroof.main([*SUBLAYERS, "--factors", str(path)]) == 0
    assert "skip mlp of layers " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["plan", "sparsity", "qwen3-4b"], "trick 'sparsity': is not known"),
        ([*LAYERS, "--block", "32"], "--block 32: changes nothing in a plan of layer-skip; leave"),
        ([*LAYERS, "--block-cache"], "--block-cache: changes nothing in a plan of layer-skip"),
        ([*LAYERS, "--factors", "f.json"], "leave it out, or plan sublayers"),
        ([*SUBLAYERS, "--fractions", "0.5"], "--fractions 0.5: changes nothing in a plan of sub"),
        ([*SUBLAYERS], "needs what each sublayer does to acceptance; add --factors FILE"),
        ([*LLADA, "--draft-lengths", "2"], "leave it out, or plan layer-skip or sublayers"),
        ([*LAYERS, "--fractions", "0.001"], "--fractions 0.001: skips none of the 32 layers"),
        ([*LAYERS, "--fractions", "0.5,0.5"], "--fractions 0.5,0.5: has 0.5 twice; give it once"),
        ([*LAYERS, "--fractions", "nan"], "--fractions nan: is not a number"),
        ([*LAYERS, "--draft-lengths", "1,,2"], "--draft-lengths '': is not a whole number"),
        ([*LAYERS, "--measured", "0.5"], "--measured 0.5: is not FRACTION=ACCEPTANCE"),
        (["plan", "diffusion", "qwen3-4b"], "qwen3-4b: is no diffusion model"),
        ([*LLADA, "--answers", "64,4000"], "--answers 4000: is, behind 1024 tokens of context"),
        ([*LLADA, "--canvas", "512", "--block-cache"], "--canvas 512: changes nothing with"),
        ([*LLADA, "--rival", "llama-3.1-70b"], "llama-3.1-70b 4bit on m3-10core-16gb: does not"),
        ([*LLADA, "--rival", "gpt2-large", "--context", "1025"], "beyond the 1024 tokens of gpt2"),
    ],
)
def test_bad_input_is_one_line_and_exit_two(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokroof.main(arguments) == 2
    shown = capsys.readouterr()
    assert line in shown.err
    assert (shown.err.count("\n"), shown.out) == (1, "")
