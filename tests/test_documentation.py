"""What the README tells a person to type exists, and nothing that exists is left out.

Its Python examples run as doctests (pyproject.toml gives README.md to pytest).
"""

from __future__ import annotations

import argparse
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

import tokroof
from model import catalog

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()

FENCED = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def command_lines(text: str) -> list[list[str]]:
    """Each shell line in a fenced block, as words, without its comment."""
    blocks = [block.replace("\\\n", " ") for block in FENCED.findall(text)]
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def option_names(command: str) -> set[str]:
    """The options that one command takes, as its help lists them."""
    parser = argparse.ArgumentParser()
    import_module(tokroof.COMMANDS[command][0]).add_arguments(parser)
    listed = re.findall(r"^  (-.+?)(?:  |$)", parser.format_help(), re.MULTILINE)
    return {name for line in listed for name in re.findall(r"--[a-z][a-z0-9-]*", line)}


EXAMPLES = [words for words in command_lines(README) if Path(words[0]).name == "tokroof"]
NAMED = {words for words in INLINE.findall(README) if words.startswith("tokroof ")}


@pytest.mark.parametrize("words", EXAMPLES, ids=" ".join)
def test_each_example_is_accepted_by_the_parser(words: list[str]) -> None:
    arguments = words[1:]
    command = next(word for word in arguments if word in tokroof.COMMANDS)
    options = tokroof.build_parser(command).parse_args(arguments)
    assert options.command == command


def test_each_example_that_only_predicts_runs(capsys: pytest.CaptureFixture[str]) -> None:
    predicting = [
        arguments
        for _, *arguments in EXAMPLES
        if tokroof.COMMANDS[arguments[0]][0].startswith("model.")
    ]
    assert predicting
    for arguments in predicting:
        assert tokroof.main(arguments) == 0, " ".join(arguments)
        assert capsys.readouterr().out


@pytest.mark.parametrize("line", sorted(NAMED))
def test_each_command_and_option_named_in_the_text_exists(line: str) -> None:
    command, *words = line.split()[1:]
    assert command in tokroof.COMMANDS
    assert {word for word in words if word.startswith("--")} <= option_names(command)


def test_each_option_named_alone_exists_in_some_command() -> None:
    named = {words.split()[0] for words in INLINE.findall(README) if words.startswith("--")}
    known = {name for command in tokroof.COMMANDS for name in option_names(command)}
    assert named <= known


def test_every_command_is_in_the_readme() -> None:
    written = [words[1] for words in EXAMPLES] + [line.split()[1] for line in NAMED]
    assert set(written) == set(tokroof.COMMANDS)


def test_the_readme_counts_what_is_shipped() -> None:
    networks, heads = len(catalog.architecture_names()), len(catalog.head_names())
    assert f"{networks} networks and {heads} draft heads" in README


def test_the_glossary_is_the_packaged_one() -> None:
    section = README.partition("## Glossary")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    assert table == catalog.glossary_text().splitlines()
    assert len(table) > 10


def test_every_make_target_named_in_the_readme_exists() -> None:
    lines = [" ".join(words) for words in command_lines(README)] + INLINE.findall(README)
    named = {word for line in lines if line.startswith("make ") for word in line.split()[1:]}
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert {"demo", "setup"} <= named
    assert {word for word in named if "=" not in word} <= targets


def test_the_reader_of_command_lines_sees_what_a_shell_would() -> None:
    text = '```sh\n$ tokroof predict a \\\n  --draft "b c"  # a comment\n\n```\n`tokroof run`\n'
    assert command_lines(text) == [["tokroof", "predict", "a", "--draft", "b c"]]
