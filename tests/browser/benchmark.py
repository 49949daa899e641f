"""Times of the dashboard as a person waits for them, in a real browser: a part of `make bench`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from playwright.sync_api import BrowserContext, Page

from tests.browser.driving import (
    ANSWER,
    MESSAGE,
    PATIENCE_MS,
    browser,
    opened,
    served,
    settled,
    slide,
    slider,
    views,
)

ACCEPTANCE, CONTEXT = "Acceptance", "Context (tokens)"
SLIDING = {
    "": (ACCEPTANCE, CONTEXT),
    "bottleneck": (ACCEPTANCE, CONTEXT),
    "row_costs": (CONTEXT, "Rows up to"),
    "roofline": (ACCEPTANCE, CONTEXT),
    "break_even": (
        *(ACCEPTANCE, CONTEXT),
        *("Draft lengths up to", "Your acceptance may be off by (±)"),
    ),
    "context": (ACCEPTANCE, CONTEXT),
    "layer_skip": (CONTEXT,),
    "diffusion": (CONTEXT, "Block (tokens)"),
}
"""The sliders that change a view's picture, on every view that has one."""
SETTINGS = {"diffusion": "&target=llada2.0-mini&draft=none"}
"""Settings with which a view has a picture, where the usual ones give none."""
MOVES = 20
"""Of each slider; one of few positions is begun again with other settings (`fresh`)."""
STILL_MS = 300
"""A picture in which nothing moves for so long has been painted."""
WATCH = """() => {
  addEventListener("keydown", (event) => { [window.moved, window.painted] = [event.timeStamp, 0]; },
    true);
  const inChart = (node) => node.closest && node.closest("[data-testid=stVegaLiteChart]");
  const after = new MessageChannel();
  after.port1.onmessage = () => { window.painted = performance.now(); };
  new MutationObserver((changes) => {
    if (changes.some((each) => inChart(each.target))) {
      requestAnimationFrame(() => after.port2.postMessage(0));
    }
  }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
}"""
"""Remember when a key was pressed, and the end of the last frame that changed a chart.

What is posted while a frame is prepared arrives when it has been painted.
"""
STILL = f"performance.now() - Math.max(window.moved, window.painted) > {STILL_MS}"


def main() -> None:
    """Time the first answer, every view, and every slider."""
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as home, served(Path(home)) as address, browser() as started:
        context = started.new_context(viewport={"width": 1280, "height": 900})
        # The server has just begun to listen, and the browser has fetched nothing before.
        answer, picture = first_answer(context, address)
        report("first answer, all cold", [answer], limit_s=3.0)
        report("first picture, all cold", [picture], limit_s=3.0)
        for path, title in views().items():
            opened(context.new_page(), f"{address}/{path}").close()
            times = [first_answer(context, f"{address}/{path}")[1] for _ in range(3)]
            report(f"answer and picture, warm: {title}", times, limit_s=3.0)
        for path, labels in SLIDING.items():
            of_view: list[float] = []
            for label in labels:
                of_view += slides(context, f"{address}/{path}", label, SETTINGS.get(path, ""))
            report(f"slider to picture: {views()[path]}", of_view, limit_s=0.3)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def first_answer(context: BrowserContext, address: str) -> tuple[float, float]:
    """Seconds from the address to the sentence that answers, and to the picture beside it."""
    page = context.new_page()
    begun = perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(f"{ANSWER}, {MESSAGE}")
    answered = perf_counter() - begun
    settled(page)
    drawn = perf_counter() - begun
    page.close()
    return answered, drawn


def slides(context: BrowserContext, address: str, label: str, settings: str) -> list[float]:
    """Seconds from a key on a slider to the end of the last frame that it changed, by move.

    A move that changes nothing in the picture has no such frame and is left out.
    """
    times: list[float] = []
    moves = 0
    for begin in fresh():
        page = opened(context.new_page(), f"{address}?{begin}{settings}")
        page.evaluate(WATCH)
        page.wait_for_timeout(1000)
        while moves < MOVES and not at_its_end(page, label):
            slide(page, label, "ArrowRight")
            moves += 1
            page.wait_for_timeout(STILL_MS)
            settled(page)
            page.wait_for_function(STILL, timeout=PATIENCE_MS)
            if page.evaluate("window.painted"):
                times.append(page.evaluate("(window.painted - window.moved) / 1000"))
        page.close()
        if moves == MOVES:
            break
    return times


def fresh() -> Iterator[str]:
    """Settings to begin with that nobody asked about before: an answer is computed once."""
    for batch in range(1, 21):
        yield f"acceptance=0.4&context=0&batch={batch}&longest=4&most=16&block=8"


def at_its_end(page: Page, label: str) -> bool:
    """Whether a slider cannot be moved further up."""
    return slider(page, label).evaluate("(input) => Number(input.value) >= Number(input.max)")


def report(name: str, times: list[float], *, limit_s: float) -> None:
    """Print the median, the 95th percentile and the slowest beside what must be held."""
    middle, p95, slowest = 1e3 * np.quantile(times, [0.5, 0.95, 1.0])
    print(
        f"{name:<60} median {middle:5.0f} ms   p95 {p95:5.0f} ms   slowest {slowest:5.0f} ms "
        f"of {len(times):3}   (to hold: {1e3 * limit_s:.0f})"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
