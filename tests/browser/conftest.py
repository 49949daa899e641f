"""One server and one browser for all tests; a page of its own, whose console is read, for each."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.browser.driving import browser, served


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the server's user, who has never calibrated."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def address(home: Path) -> Generator[str]:
    with served(home) as found:
        yield found


@pytest.fixture(scope="session")
def context() -> Generator[BrowserContext]:
    """A person's browser: what it has fetched once, it keeps."""
    with browser() as started:
        yield started.new_context()


@pytest.fixture
def page(context: BrowserContext) -> Generator[Page]:
    """A page of which nothing is wrong in the console when the test is over."""
    opened = context.new_page()
    opened.set_viewport_size({"width": 1280, "height": 900})
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "console",
        lambda message: complaints.append(message.text) if message.type == "error" else None,
    )
    yield opened
    opened.close()
    # Streamlit looks for its server below the address of a view first, and then where it is.
    assert [each for each in complaints if "404" not in each] == []
