"""Times of the dashboard as a person waits for them, in a real browser: a part of `make bench`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from playwright.sync_api import BrowserContext, Page

from tests.browser.driving import ANSWER, browser, opened, served, settled, slide, views

SLIDING = ("", "bottleneck", "roofline", "break_even")
"""The views that the acceptance changes."""
MOVES = 20
WATCH = """() => {
  const begin = () => { window.moved = performance.now(); window.painted = 0; };
  addEventListener("keydown", begin, true);
  const inChart = (node) => node.closest && node.closest("[data-testid=stVegaLiteChart]");
  new MutationObserver((changes) => {
    if (changes.some((each) => inChart(each.target))) {
      requestAnimationFrame(() => { window.painted = performance.now(); });
    }
  }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
}"""
"""Remember when a key was pressed, and the last frame after which a chart was another one."""


def main() -> None:
    """Time the first answer, every view, and the slider."""
    with tempfile.TemporaryDirectory() as home, served(Path(home)) as address, browser() as started:
        context = started.new_context(viewport={"width": 1280, "height": 900})
        # The server has just begun to listen, and the browser has fetched nothing before.
        report("first answer, all cold", [first_answer(context, address)], limit_s=3.0)
        for path, title in views().items():
            page = opened(context.new_page(), f"{address}/{path}")
            page.close()
            times = [first_answer(context, f"{address}/{path}") for _ in range(3)]
            report(f"answer, warm: {title}", times, limit_s=3.0)
        for path in SLIDING:
            page = opened(context.new_page(), f"{address}/{path}")
            report(f"slider to chart: {views()[path]}", slides(page), limit_s=0.3)
            page.close()


def first_answer(context: BrowserContext, address: str) -> float:
    """Seconds from the address to the sentence that answers."""
    page = context.new_page()
    begun = perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(ANSWER)
    took = perf_counter() - begun
    settled(page)
    page.close()
    return took


def slides(page: Page) -> list[float]:
    """Seconds from a key on the acceptance to the last frame that it changed, move by move."""
    page.evaluate(WATCH)
    page.wait_for_timeout(1000)
    times: list[float] = []
    for _ in range(MOVES):
        slide(page, "Acceptance", "ArrowRight")
        page.wait_for_function("window.painted > 0")
        page.wait_for_timeout(400)  # until it is still
        times.append(page.evaluate("(window.painted - window.moved) / 1000"))
    return times


def report(name: str, times: list[float], *, limit_s: float) -> None:
    """Print the median and the 95th percentile beside what must be held."""
    middle, p95 = 1e3 * np.quantile(times, [0.5, 0.95])
    print(
        f"{name:<50} median {middle:6.0f} ms   p95 {p95:6.0f} ms   (to hold: {1e3 * limit_s:.0f})"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
