"""One server and one browser for all tests; a page of its own, whose console is read, for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.driving import browser as started_browser
from tests.browser.driving import served


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of which nothing is wrong in the console when the test is over."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "console",
        lambda message: complaints.append(message.text) if message.type == "error" else None,
    )
    yield opened
    context.close()
    # Streamlit looks for its server below the address of a view first, and then where it is.
    assert [each for each in complaints if "404" not in each] == []
