"""The `tokroof` command: where the three packages meet, and nothing else does.

Each subcommand is a module with `add_arguments(parser)` and `execute(options) -> int`. Only the
module of the command that was asked for is imported, so that `predict` starts in a blink.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn, final

from model.errors import InputError

COMMANDS = {
    "demo": ("calibrate.commands.demo", "calibrate quickly, predict, run, and compare"),
    "machines": ("model.commands.machines", "list the machines that can be predicted for"),
    "models": ("model.commands.models", "list the models, or count one model's bytes"),
    "predict": ("model.commands.predict", "predict tokens per second of a strategy"),
    "plan": ("model.commands.plan", "which settings of a trick could pay, and what they need"),
    "break-even": ("model.commands.break_even", "the acceptance at which speculation pays"),
    "context": ("model.commands.context", "tokens per second and memory over the context"),
    "roofline": ("model.commands.roofline", "every strategy's pass under its kernel's roofs"),
    "rows": ("calibrate.commands.rows", "what a pass of more rows costs, and where it jumps"),
    "articles": ("model.commands.articles", "the two articles' claims, re-examined with the model"),
    "calibrate": ("calibrate.commands.calibrate", "measure this machine and fit its profile"),
    "run": ("calibrate.commands.run", "really run a strategy and record it"),
    "validate": ("calibrate.commands.validate", "compare predictions with measured runs"),
    "audit": ("calibrate.commands.audit", "find impossible or suspicious measured runs"),
    "import": ("calibrate.commands.import_runs", "turn other benchmarks' output into runs"),
    "dashboard": ("dashboard.commands.dashboard", "see where each trick moves the bottleneck"),
}


@final
class OneLineParser(argparse.ArgumentParser):
    """A parser that refuses in one line, and takes no abbreviations."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where the right words are."""
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` lists what there is\n")


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; only the chosen one's arguments are loaded."""
    parser = OneLineParser(
        prog="tokroof",
        allow_abbrev=False,
        description="Will this trick make my model faster on my machine, and what binds it then?",
    )
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=OneLineParser
    )
    for name, (module, summary) in COMMANDS.items():
        subparser = subparsers.add_parser(
            name, help=summary, description=summary, allow_abbrev=False
        )
        if name == chosen:
            import_module(module).add_arguments(subparser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; bad input is one line on stderr and exit status 2."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    chosen = next((word for word in arguments if word in COMMANDS), None)
    try:  # a command's imports take a second, in which it may be interrupted as well
        options = build_parser(chosen).parse_args(arguments)
        status: int = import_module(COMMANDS[options.command][0]).execute(options)
        sys.stdout.flush()
        return status
    except InputError as error:
        print(f"tokroof {chosen}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has seen enough (`tokroof models | head`); nothing is left to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(f"tokroof {chosen}: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
