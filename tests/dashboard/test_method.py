"""The method is what the modules say, all of it, as formulas that can be drawn."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.equations import SECTIONS, described
from dashboard.markup import first_sentence, to_markdown
from model.catalog import glossary_text

ROOT = Path(__file__).parent.parent.parent
APP = str(ROOT / "dashboard" / "app.py")
LISTED = [module for modules in SECTIONS.values() for module in modules]
MATH = re.compile(r"\$\$\n(.*?)\n\$\$", re.DOTALL)


def modules_with_equations() -> set[str]:
    """Every module whose own docstring states one; those of the articles are claims of others."""
    found: set[str] = set()
    for package in ("model", "calibrate"):
        for path in (ROOT / package).rglob("*.py"):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            if ".. math::" in text and "articles" not in path.parts:
                found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


def test_every_module_with_an_equation_is_shown_once() -> None:
    assert len(LISTED) == len(set(LISTED))
    assert modules_with_equations() <= set(LISTED)


@pytest.mark.parametrize("module", LISTED)
def test_nothing_of_a_docstring_is_left_as_it_was(module: str) -> None:
    found = described(module)
    assert MATH.search(found.text)
    assert ".. " not in found.text
    assert not re.search(r":[a-z]+:`", found.text)
    assert 10 < len(found.title) < 160
    for formula in MATH.findall(found.text):
        assert formula.count("{") == formula.count("}")
        assert formula.count(r"\left") == formula.count(r"\right")
        assert "`" not in formula
    # Every fence and every formula in a line is closed.
    assert found.text.count("$$") % 2 == 0
    assert MATH.sub("", found.text).replace(r"\$", "").count("$") % 2 == 0


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (":math:`a\nb`", "$a b$"),
        (":mod:`model.units` and :class:`~model.units.Array`", "`model.units` and `Array`"),
        ("``x`` of `y`", "`x` of `y`"),
        ("5 $ a month", r"5 \$ a month"),
        ("A:\n\n.. math:: a\n          + b\n\nB", "A:\n\n$$\na\n+ b\n$$\n\nB"),
        ("T\n\n.. math::\n\n   a\n\n   b\n", "T\n\n$$\na\n$$\n\n$$\nb\n$$"),
        (".. math:: a \\\\ b", "$$\n\\begin{aligned}\na \\\\ b\n\\end{aligned}\n$$"),
        (
            "T\n\n.. math:: a = 1,\n     \\qquad b = {2}",
            "T\n\n$$\n\\begin{gathered}\na = 1 \\\\\nb = {2}\n\\end{gathered}\n$$",
        ),
        (".. math:: \\text{a, \\qquad b}", "$$\n\\text{a, \\qquad b}\n$$"),
        ("See\n\n>>> 1 + 1\n2\n\nEnd", "See\n\n```python\n>>> 1 + 1\n2\n```\n\nEnd"),
        ("* one\n* two", "* one\n* two"),
        ("", ""),
    ],
)
def test_markup(written: str, shown: str) -> None:
    assert to_markdown(written) == shown


def test_a_title_is_the_first_sentence() -> None:
    assert first_sentence("Cost of MLX 0.32\nkernels. More.\n\nText.") == "Cost of MLX 0.32 kernels"


def opened(**settings: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for key, value in settings.items():
        app.query_params[key] = value
    return app.run().switch_page("views/method.py").run()


def test_the_view_opens_on_equations_whatever_the_address_says() -> None:
    app = opened(about="nonsense", target="llama-3.1-70b")
    assert not app.exception
    assert not app.error
    assert app.header[0].value.startswith("Method")
    assert any("$$" in each.value for each in app.markdown)


def test_the_glossary_is_the_packaged_one() -> None:
    app = opened(about="Glossary")
    assert not app.exception
    assert glossary_text() in [each.value + "\n" for each in app.markdown]
