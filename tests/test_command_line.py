"""The command line: it starts light, and bad input is one line and exit status 2."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import tokroof
from model.errors import InputError

ROOT = Path(__file__).parent.parent

IMPORT_ALL_OF_MODEL = """
import pkgutil, sys
import model
for module in pkgutil.walk_packages(model.__path__, "model."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
print(sum(name.startswith("model.") for name in sys.modules))
print(*{name.partition(".")[0] for name in sys.modules})
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def fake_command(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A tenth command, `ask`, whose execution each test gives."""
    module = SimpleNamespace()

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--acceptance", type=float)

    module.add_arguments = add_arguments
    monkeypatch.setitem(sys.modules, "fake_command", module)
    monkeypatch.setitem(tokroof.COMMANDS, "ask", ("fake_command", "a question"))
    return module


def test_help_names_every_command() -> None:
    result = python("-m", "tokroof", "--help")
    assert result.returncode == 0
    assert result.stderr == ""
    listed = {line.split()[0] for line in result.stdout.splitlines() if line.startswith("    ")}
    assert set(tokroof.COMMANDS) <= listed


@pytest.mark.parametrize("arguments", [[], ["predikt"], ["predikt", "--json"], ["--fast"]])
def test_an_unknown_command_is_refused_without_a_traceback(arguments: list[str]) -> None:
    result = python("-m", "tokroof", *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("tokroof: ")
    assert line.endswith("; `tokroof --help` lists what there is")


def test_an_abbreviated_option_is_refused() -> None:
    result = python("-m", "tokroof", "models", "--js")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("tokroof: unrecognized arguments: --js; ")


def test_the_exit_status_is_what_the_command_returns(fake_command: SimpleNamespace) -> None:
    seen: list[float] = []

    def execute(options: argparse.Namespace) -> int:
        seen.append(options.acceptance)
        return 7

    fake_command.execute = execute
    assert tokroof.main(["ask", "--acceptance", "0.8"]) == 7
    assert seen == [0.8]


def test_bad_input_is_one_line_and_exit_2(
    fake_command: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(options: argparse.Namespace) -> int:
        value = f"--acceptance {options.acceptance}"
        raise InputError(value, "is not a probability", "give a number in [0, 1]")

    fake_command.execute = execute
    assert tokroof.main(["ask", "--acceptance", "1.4"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "tokroof ask: --acceptance 1.4: is not a probability; give a number in [0, 1]\n"
    )


def test_a_fault_of_ours_is_not_dressed_up_as_bad_input(fake_command: SimpleNamespace) -> None:
    def execute(options: argparse.Namespace) -> int:
        raise ValueError("a bug")

    fake_command.execute = execute
    with pytest.raises(ValueError, match="a bug"):
        tokroof.main(["ask"])


def test_interruption_is_one_line_and_exit_130(
    fake_command: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(options: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    fake_command.execute = execute
    assert tokroof.main(["ask"]) == 130
    assert capsys.readouterr().err == "tokroof ask: interrupted\n"


def test_a_command_may_be_interrupted_while_it_is_imported(
    capsys: pytest.CaptureFixture[str], fake_command: SimpleNamespace
) -> None:
    def add_arguments(_: argparse.ArgumentParser) -> None:
        raise KeyboardInterrupt

    fake_command.add_arguments = add_arguments
    assert tokroof.main(["ask"]) == 130
    assert capsys.readouterr().err == "tokroof ask: interrupted\n"


def test_a_model_that_nobody_knows_is_one_line_and_exit_2() -> None:
    result = python("-m", "tokroof", "predict", "lama-3.1-8x")
    assert result.returncode == 2
    assert result.stdout == ""
    assert "lama-3.1-8x" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_theory_imports_nothing_heavy() -> None:
    result = python("-c", IMPORT_ALL_OF_MODEL)
    assert result.stderr == ""
    count, names = result.stdout.splitlines()
    assert int(count) >= 2
    assert "numpy" in names.split()
    heavy = {"mlx", "mlx_lm", "scipy", "streamlit", "altair", "pandas", "transformers"}
    assert set(names.split()) & (heavy | {"calibrate", "dashboard"}) == set()


def test_help_imports_no_command() -> None:
    result = python("-c", "import sys, tokroof; tokroof.build_parser(); print(*sys.modules)")
    loaded = set(result.stdout.split())
    assert "tokroof" in loaded
    assert not loaded & {"numpy", *(module for module, _ in tokroof.COMMANDS.values())}
