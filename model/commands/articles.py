"""`tokroof articles`: the claims of two articles beside what the model says, and why."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from model.articles.bench import article_bench
from model.articles.claim import Claim, Figure, Panel, Published, Unanswered
from model.articles.registry import CLAIMS, examine
from model.commands import options as shared
from model.commands.table import table
from model.machine.profile_store import choose_profile

WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `articles`."""
    parser.add_argument(
        "claim", metavar="CLAIM", nargs="?", help=f"one of {', '.join(CLAIMS)} (default: all)"
    )
    shared.add_machine(parser)


def execute(options: argparse.Namespace) -> int:
    """Examine and print; without a machine it is that of the articles, not this one."""
    machine = None if options.machine is None else choose_profile(options.machine).profile
    bench = article_bench(machine)
    examined = examine(bench, options.claim)
    origin = max(profile.origin for profile in bench.profiles).label
    if options.json:
        document = {
            "machine": bench.now.header.name,
            "runtimes": [profile.header.runtime for profile in bench.profiles],
            "origin": origin,
            "claims": [asdict(each) for each in examined if isinstance(each, Claim)],
            "unanswered": [asdict(each) for each in examined if isinstance(each, Unanswered)],
        }
        print(json.dumps(document, indent=2))
        return 0
    texts = [
        claim_text(each) if isinstance(each, Claim) else f"[{each.id}] cannot tell: {each.reason}"
        for each in examined
    ]
    print("\n\n".join(texts))
    print(f"\nconstants of {bench.now.header.chip}: {origin}; (x-y) is a 90 % interval")
    return 0


def claim_text(claim: Claim) -> str:
    """A heading, the setting, what was published, a table or more, and a paragraph."""
    setting = claim.setting
    draft = f" drafted by {setting.draft}" if setting.draft else ""
    lines = [
        f"== {claim.title} [{claim.id}]",
        wrapped(
            f"{claim.article}; {setting.target} {setting.format}{draft} on {setting.machine}, "
            f"{setting.runtime}, {setting.context:g} tokens of context; "
            f"not stated: {', '.join(setting.assumed)}"
        ),
    ]
    if claim.published:
        lines.append(wrapped(f"published: {published_text(claim.published)}"))
    lines += [panel_text(panel) for panel in claim.predicted]
    lines += ["", wrapped(f"{claim.verdict.upper()}. {' '.join(claim.explanation)}")]
    return "\n".join(lines)


def wrapped(text: str, indent: str = "") -> str:
    """A paragraph of the page's width."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def published_text(published: Sequence[Published]) -> str:
    """Published numbers, with their source where it is not the article."""
    parts: list[str] = []
    for source, group in groupby(published, key=lambda each: each.source):
        numbers = ", ".join(f"{each.name} {each.value:g}" for each in group)
        parts.append(f"{numbers} ({source})" if source else numbers)
    return "; ".join(parts)


def panel_text(panel: Panel) -> str:
    """A row for each case and a column for each name, under a title."""
    names = list(dict.fromkeys(figure.name for figure in panel.figures))
    cells = {(figure.case, figure.name): cell(figure) for figure in panel.figures}
    cases = list(dict.fromkeys(figure.case for figure in panel.figures))
    rows = [[case, *(cells.get((case, name), "") for name in names)] for case in cases]
    text = textwrap.indent(table(["", *names], rows), "  ")
    return f"\n{wrapped(panel.title, '  ')}:\n{text}"


def cell(figure: Figure) -> str:
    """A number with its interval, or the word in its place."""
    if figure.value is None:
        return str(figure.word or "-")
    digits = 0 if abs(figure.value) >= 100 else 1 if abs(figure.value) >= 10 else 2
    text = f"{figure.value:.{digits}f}"
    if figure.interval_90 is None:
        return text
    low, high = figure.interval_90
    return f"{text} ({low:.{digits}f}-{high:.{digits}f})"
