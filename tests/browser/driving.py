"""A dashboard that is really served, and a real browser that looks at it."""

from __future__ import annotations

import ast
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

ROOT = Path(__file__).parent.parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Started by root in a container it has no sandbox; what it would fetch for itself is no business
# of a test.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MAC_BROWSER = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
PATIENCE_MS = 60_000
ANSWER = "[data-testid=stMain] [data-testid=stMarkdown] p"
MESSAGE = "[data-testid=stMain] [data-testid=stAlert]"
TRACEBACK = "[data-testid=stException]"
SETTLED = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  const main = document.querySelector("[data-testid=stMain]");
  if (!main || app.dataset.testScriptState !== "notRunning") return false;
  if (!main.querySelector("[data-testid=stMarkdown], [data-testid=stAlert]")) return false;
  if (main.querySelector("[data-testid=stSkeleton]")) return false;
  const charts = [...main.querySelectorAll("[data-testid=stVegaLiteChart]")];
  return charts.every((chart) => chart.querySelector("svg, canvas"));
}"""
"""The script has run, something is said, nothing is to come, and every picture is drawn."""


@contextmanager
def served(home: Path) -> Generator[str]:
    """The address of a dashboard whose user has this home."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tokroof", "dashboard", "--no-browser", "--port", str(port)]
    environment = {**os.environ, "HOME": str(home), "TOKROOF_HOME": str(home)}
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _wait_for(f"{address}/_stcore/health")
            yield address
        finally:
            server.terminate()


def _wait_for(address: str, patience_s: float = 60.0) -> None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            with urlopen(address, timeout=1) as reply:
                if reply.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"nothing answers at {address}")


@contextmanager
def browser() -> Generator[Browser]:
    """A headless browser of this machine."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found_browser(), args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()


def found_browser() -> str:
    """The browser that is installed.

    Raises:
        FileNotFoundError: none is.
    """
    named = os.environ.get("BROWSER_PATH")
    paths = [named, *(shutil.which(name) for name in BROWSERS), MAC_BROWSER]
    for path in paths:
        if path and Path(path).exists():
            return path
    raise FileNotFoundError(f"no browser: install one of {', '.join(BROWSERS)}")


def views() -> dict[str, str]:
    """The title of every view of the dashboard, by its path in the address."""
    found = [
        (Path(file).stem, title)
        for section in _sections().values()
        for file, title in section.items()
    ]
    return {"" if index == 0 else path: title for index, (path, title) in enumerate(found)}


def section_of(title: str) -> str:
    """The section of the navigation in which a view is."""
    return next(name for name, section in _sections().items() if title in section.values())


def _sections() -> dict[str, dict[str, str]]:
    """The list of views as app.py has it; to import that file would be to run it."""
    tree = ast.parse((ROOT / "dashboard" / "app.py").read_text())
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "VIEWS":
            return ast.literal_eval(statement.value)
    raise LookupError("app.py has no VIEWS")


def opened(page: Page, address: str) -> Page:
    """The page, when it shows all that is at the address."""
    page.goto(address, wait_until="commit")
    settled(page)
    return page


def settled(page: Page) -> None:
    """Wait until the page has run and shows a picture or a message."""
    page.wait_for_function(SETTLED, timeout=PATIENCE_MS)


def gone_to(page: Page, title: str) -> None:
    """Choose a view in the navigation."""
    page.locator("[data-testid=stTopNavSection]", has_text=section_of(title)).click()
    named = page.locator("[data-testid=stTopNavDropdownLink]", has_text=title.partition(":")[0])
    named.click()
    expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible(timeout=PATIENCE_MS)
    settled(page)


def answer_of(page: Page) -> str:
    """The sentence at the head of the view."""
    return page.locator(ANSWER).first.inner_text()


def slide(page: Page, label: str, key: str) -> None:
    """Press a key on the slider of that label."""
    slider(page, label).focus()
    page.keyboard.press(key)


def slider(page: Page, label: str) -> Locator:
    """The input of the slider of that label."""
    return page.locator(f"input[type=range][aria-label='{label}']")
