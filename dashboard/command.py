"""A call of `tokroof`: the words that a person can copy, and the options that they become.

Every figure asks the model through the options of a command, so that the command line gives the
numbers of the picture to the last digit.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A subcommand, what it is asked about, and its settings in order; a switch has no value.

    >>> call = Command(name="predict", about=("qwen3-4b",), settings=(("--format", "4bit"),))
    >>> call.text
    'tokroof predict qwen3-4b --format 4bit'
    """

    name: str
    about: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    switches: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The call as it is typed into a shell."""
        words = ["tokroof", self.name, *self.about]
        for flag, value in self.settings:
            # A value that begins like a flag would be taken for one.
            words += [f"{flag}={value}"] if value.startswith("-") else [flag, value]
        return shlex.join([*words, *self.switches])

    def options(self, add_arguments: Callable[[argparse.ArgumentParser], None]) -> (
        argparse.Namespace
    ):  # fmt: skip
        """The options of the call, as the command itself would read them."""
        parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
        add_arguments(parser)
        words = [f"{flag}={value}" for flag, value in self.settings]
        return parser.parse_args([*words, *self.switches, "--", *self.about])


def given(*settings: tuple[str, object]) -> tuple[tuple[str, str], ...]:
    """The settings that say something: None, 0 and the empty text do not.

    >>> given(("--draft", "qwen3-0.6b"), ("--runtime", ""), ("--memory", None))
    (('--draft', 'qwen3-0.6b'),)
    """
    return tuple((flag, str(value)) for flag, value in settings if value not in (None, "", 0))
