"""Command lines in a log: what a tool was told, where its output does not repeat it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A call of a tool: its options by name; one whose value is not known has ""."""

    flags: Mapping[str, str]

    def flag(self, *names: str) -> str:
        """The value of the first of these names that was given, or nothing."""
        return next((self.flags[name] for name in names if self.flags.get(name)), "")


NO_COMMAND = Command(flags={})


def commands(text: str, tools: re.Pattern[str]) -> tuple[tuple[int, Command], ...]:
    r"""Each command line of a text that calls one of the tools with options, with its line.

    >>> text = "% mlx_lm.benchmark --model=a/b \\\n  -p 128"
    >>> [(line, call)] = commands(text, re.compile("mlx_lm"))
    >>> line, call.flag("--model", "-m"), call.flag("--prompt-tokens", "-p")
    (2, 'a/b', '128')
    """
    found: list[tuple[int, Command]] = []
    pending = ""
    for number, line in enumerate(text.split("\n"), start=1):
        pending += line
        if line.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        called = tools.search(pending)
        if called is not None and (flags := options(pending[called.start() :])):
            found.append((number, Command(flags=flags)))
        pending = ""
    return tuple(found)


def options(command: str) -> Mapping[str, str]:
    """The options of a command line; `--model x` and `--model=x` are the same.

    A value is not known where the shell put it in, or where an option is given twice.
    """
    try:
        words = shlex.split(command.strip("`"))
    except ValueError:  # an apostrophe in prose
        words = command.split()
    flags: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            value = value if equals else "" if following.startswith("-") else following
            flags[name] = "" if name in flags or value.startswith("$") else value
    return flags
