"""Real weights come from a local folder, whose code is never run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tokroof
from calibrate.run_settings import Settings
from calibrate.vlm.diffusion import open_diffusion, run_diffusion
from model.errors import InputError
from tests.calibrate.test_networks import save
from tests.calibrate.vlm.tiny import LLADA, needs_mlx_vlm, written

pytestmark = needs_mlx_vlm
SETTINGS = Settings(strategy="diffusion", block=8, steps=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    drawn = open_diffusion(written(tmp_path, "llada", LLADA), "fp32", "auto")
    made = tmp_path / "weights"
    made.mkdir()
    save(made, drawn, LLADA | {"dtype": "float32"})
    return made


def test_weights_of_a_folder_are_those_that_were_written(folder: Path, tmp_path: Path) -> None:
    real = open_diffusion(str(folder), None, "auto")
    assert (real.weights, real.format_name, real.name) == ("real", "fp32", str(folder))
    drawn = open_diffusion(str(tmp_path / "llada.json"), "fp32", "auto")
    runs = [run_diffusion(each, range(1, 9), 8, SETTINGS) for each in (real, drawn)]
    assert runs[0].output == runs[1].output


def test_real_weights_continue_a_text(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKROOF_HOME", str(folder))
    command = ["run", "diffusion", str(folder), "--block", "4", "--answer", "6"]
    assert tokroof.main([*command, "--prompt", "bell", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["target_weights"], run["context_tokens"]) == ("real", 4)
    assert len(run["output"]) == 6


def test_random_weights_may_be_asked_for_all_the_same(folder: Path) -> None:
    assert open_diffusion(str(folder), "4bit", "random").weights == "random"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (LLADA | {"model_file": "own.py"}, r"config.json: asks to run 'own.py'"),
        (LLADA | {"num_hidden_layers": 3}, r"weights: cannot be loaded \(ValueError"),
    ],
)
def test_a_folder_that_cannot_be_loaded_is_one_line(
    folder: Path, config: dict[str, Any], said: str
) -> None:
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=said) as caught:
        open_diffusion(str(folder), None, "auto")
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_here_are_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no weights on this machine; .* nothing is downloa"):
        open_diffusion(written(tmp_path, "llada", LLADA), None, "real")
