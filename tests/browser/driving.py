"""A dashboard that is really served, and a real browser that looks at it."""

from __future__ import annotations

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

from playwright.sync_api import Browser, Page, sync_playwright

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
CHART = "[data-testid=stVegaLiteChart] svg, [data-testid=stVegaLiteChart] canvas"


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


def settled(page: Page) -> None:
    """Wait until the page has run and shows a picture or a message."""
    page.wait_for_selector(f"{CHART}, [data-testid=stAlert]", timeout=PATIENCE_MS)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")


def answer_of(page: Page) -> str:
    """The sentence at the head of the view."""
    return page.locator(ANSWER).first.inner_text()


def slide(page: Page, label: str, key: str) -> None:
    """Press a key on the slider of that label."""
    page.locator(f"input[type=range][aria-label='{label}']").focus()
    page.keyboard.press(key)
