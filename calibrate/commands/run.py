"""`tokroof run`: really decode, record it, and show the prediction beside it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import final

from calibrate.commands.validation_output import comparisons_text
from calibrate.comparison import compare_runs
from calibrate.decode import compare_tokens, decode_awaited, decode_plain, decode_speculative
from calibrate.networks import Network
from calibrate.open_network import WEIGHTS, open_network
from calibrate.progress import token_bar
from calibrate.prompts import prompt_tokens
from calibrate.run_record import STRATEGIES, Run, append_run
from model.commands import options as shared
from model.errors import InputError, unknown_name
from model.machine.profile_store import choose_profile
from model.progress.acceptance import MAX_DRAFT_LENGTH

DEFAULT_TOKENS = 64
DEFAULT_CONTEXT = 64
SAME = "same"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `run`."""
    parser.add_argument("strategy", metavar="STRATEGY", help=", ".join(STRATEGIES))
    shared.add_pair(parser, draft_required=False, context=DEFAULT_CONTEXT)
    parser.add_argument(
        "--draft-length",
        metavar="K[,K...]",
        default="2",
        help="draft tokens per round (default: 2)",
    )
    parser.add_argument(
        "--tokens",
        default=str(DEFAULT_TOKENS),
        help=f"tokens to decode (default: {DEFAULT_TOKENS})",
    )
    parser.add_argument("--prompt", help="text to continue, with real weights")
    parser.add_argument(
        "--weights", default="auto", help="random, real, or auto: real where there are any"
    )
    parser.add_argument("--output", metavar="RUNS", help="append the runs to this file")
    shared.add_machine(parser)
    parser.epilog = f"--draft {SAME} lets the target draft for itself: every guess is right."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The numbers of a run, and the file that it is appended to."""

    tokens: int
    context: int
    draft_lengths: tuple[int, ...]
    output: Path | None


def execute(options: argparse.Namespace) -> int:
    """Run plain decoding, then the strategy, and compare."""
    request = checked(options)
    choice = choose_profile(options.machine)
    target = open_network(options.target, options.format, options.weights)
    runs = decoded(options, request, target)
    if options.json:
        print(json.dumps([asdict(run) for run in runs], indent=2))
        return 0
    if choice.note:
        print(choice.note, file=sys.stderr)
    print(comparisons_text(compare_runs(runs, choice.profile)))
    for run in runs:
        print(summary(run, target))
    return 0


def checked(options: argparse.Namespace) -> Request:
    """The request that the options make, before anything is built.

    Raises:
        InputError: an option that cannot be met; it is named.
    """
    if options.strategy not in STRATEGIES:
        raise unknown_name("strategy", options.strategy, STRATEGIES)
    if options.weights not in WEIGHTS:
        raise InputError(
            f"--weights {options.weights}", "is unknown", f"one of {', '.join(WEIGHTS)}"
        )
    if options.strategy == "speculative" and options.draft is None:
        raise InputError("run speculative", "needs a draft", "add --draft MODEL")
    output = None if options.output is None else Path(options.output)
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        wrong = "is no file in a folder that is there"
        raise InputError(f"--output {options.output}", wrong, "give a file in a folder that is")
    return Request(
        tokens=shared.whole_number("--tokens", options.tokens, least=3, most=100_000),
        context=shared.whole_number("--context", options.context, least=1, most=1_000_000),
        draft_lengths=tuple(
            shared.whole_number("--draft-length", text, least=1, most=MAX_DRAFT_LENGTH)
            for text in options.draft_length.split(",")
        ),
        output=output,
    )


def decoded(options: argparse.Namespace, request: Request, target: Network) -> list[Run]:
    """The plain run, and the runs of the strategy, each kept as soon as it is over."""
    prompt = prompt_tokens(target, request.context, options.prompt)
    with token_bar() as bar:
        plain = decode_plain(target, prompt, request.tokens, progress=bar)
    runs = [kept(plain, request.output)]
    if options.strategy == "awaited":
        with token_bar() as bar:
            awaited = decode_awaited(target, prompt, request.tokens, progress=bar)
        runs.append(kept(awaited, request.output))
    if options.strategy == "speculative":
        draft = open_draft(options, target)
        for length in request.draft_lengths:
            run = speculate(target, draft, prompt, request.tokens, length, plain)
            runs.append(kept(run, request.output))
    return runs


def open_draft(options: argparse.Namespace, target: Network) -> Network:
    """The draft; `same` is the target itself, which agrees with itself on every token."""
    if options.draft == SAME:
        return target
    draft_format = options.format if options.draft_format is None else options.draft_format
    return open_network(options.draft, draft_format, options.weights)


def kept(run: Run, output: Path | None) -> Run:
    """Append a run to the file as soon as it is over, if there is one, and say so."""
    if output is not None:
        append_run(output, run)
    drafted = f" k={run.draft_length}" if run.draft else ""
    print(f"{run.strategy}{drafted}: {run.tokens_per_s:.2f} tok/s", file=sys.stderr, flush=True)
    return run


def speculate(
    target: Network,
    draft: Network,
    prompt: Sequence[int],
    tokens: int,
    draft_length: int,
    plain: Run,
) -> Run:
    """A speculative run, with its output compared to plain decoding token by token."""
    with token_bar() as bar:
        run = decode_speculative(target, draft, prompt, tokens, draft_length, progress=bar)
    return replace(run, matches_plain=compare_tokens(plain, run) is None)


def summary(run: Run, target: Network) -> str:
    """What a run showed besides its speed."""
    parts = [
        f"{run.strategy}: {len(run.round_s)} rounds, {run.tokens_per_pass:.2f} tokens per pass"
    ]
    if run.strategy == "speculative":
        rates = ", ".join(f"{rate:.2f}" for rate in run.acceptance_by_position)
        parts.append(f"acceptance by position {rates}")
        parts.append("output equals plain" if run.matches_plain else "output differs from plain")
    if target.tokenizer is not None and run.strategy == "plain":
        parts.append(repr(target.tokenizer.decode(list(run.output))))
    return "; ".join(parts)
