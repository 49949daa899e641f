r"""Docstrings, which are reStructuredText, as the Markdown with formulas that Streamlit shows.

What the docstrings of this project use is turned, and no more: paragraphs, lists, code, roles,
`.. math::` blocks and doctests.

>>> print(to_markdown("Half of :math:`x` in :mod:`model.units`:\n\n.. math:: x / 2\n\nEnd."))
Half of $x$ in `model.units`:
<BLANKLINE>
$$
x / 2
$$
<BLANKLINE>
End.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from inspect import cleandoc

DIRECTIVE = ".. math::"
ROLE = re.compile(r":(?P<role>[a-z]+):`(?P<text>[^`]*)`", re.DOTALL)
BESIDE = re.compile(r",?\s*\\qquad\s*")
CODE = re.compile(r"``(?P<text>[^`]+)``")


def to_markdown(docstring: str) -> str:
    """A docstring as Markdown; formulas are for KaTeX."""
    text = "\n".join(_blocks(cleandoc(docstring).splitlines()))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def first_sentence(docstring: str) -> str:
    """What a docstring says first, as Markdown, without its full stop."""
    paragraph = to_markdown(docstring).partition("\n\n")[0]
    return re.split(r"\.(?:\s|$)", paragraph.replace("\n", " "), maxsplit=1)[0]


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """Text with its roles turned, and every formula and doctest in a fence of its own."""
    text: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.strip().startswith(DIRECTIVE):
            yield _inline("\n".join(text))
            text = []
            content, index = _indented(lines, index)
            yield from _formulas(content)
        elif line.startswith(">>> "):
            yield _inline("\n".join(text))
            text = []
            end = next((i for i in range(index, len(lines)) if not lines[i].strip()), len(lines))
            yield "\n".join(["```python", *lines[index:end], "```"])
            index = end
        else:
            text.append(line)
            index += 1
    yield _inline("\n".join(text))


def _indented(lines: Sequence[str], start: int) -> tuple[list[str], int]:
    """The content of the directive at a line, and the line after it."""
    margin = len(lines[start]) - len(lines[start].lstrip())
    content = [lines[start].strip().removeprefix(DIRECTIVE).strip()]
    end = start + 1
    while end < len(lines):
        line = lines[end]
        if line.strip() and len(line) - len(line.lstrip()) <= margin:
            break
        content.append(line.strip())
        end += 1
    return content, end


def _formulas(content: Sequence[str]) -> Iterator[str]:
    """Each paragraph of a directive is a formula; one with line breaks is aligned."""
    for paragraph in "\n".join(content).strip().split("\n\n"):
        formula = _stacked(paragraph.strip())
        if r"\\" in formula and r"\begin" not in formula:
            formula = f"\\begin{{aligned}}\n{formula}\n\\end{{aligned}}"
        yield f"\n$$\n{formula}\n$$\n"


def _stacked(formula: str) -> str:
    """Formulas that stand beside each other, one below the other: a page may be narrow."""
    parts = BESIDE.split(formula)
    whole = all(part.count("{") == part.count("}") for part in parts)
    if len(parts) < 2 or not whole or r"\\" in formula:
        return formula
    lines = " \\\\\n".join(parts)
    return f"\\begin{{gathered}}\n{lines}\n\\end{{gathered}}"


def _inline(text: str) -> str:
    """Roles as formulas or code; a dollar sign of the text is no formula's."""

    def turned(found: re.Match[str]) -> str:
        words = " ".join(found["text"].split())
        if found["role"] == "math":
            return f"${words}$"
        return f"`{words.rpartition('.')[2] if words.startswith('~') else words}`"

    escaped = text.replace("$", r"\$")
    return CODE.sub(lambda found: f"`{found['text']}`", ROLE.sub(turned, escaped))
