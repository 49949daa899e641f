"""As a person meets it: opened, moved, shared, given files, looked at on a phone."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from model.catalog import packaged_profile_text
from model.machine.profile_store import DEFAULT_MACHINE
from model.units import MB
from tests.browser.driving import (
    ANSWER,
    MESSAGE,
    PATIENCE_MS,
    TRACEBACK,
    answer_of,
    gone_to,
    opened,
    settled,
    slide,
    views,
)

pytestmark = pytest.mark.browser

VIEWS = views()
RUNS = Path(__file__).parent.parent.parent / "calibrate/data/runs/h200-mlx-0.32.4.jsonl"


def test_it_answers_the_newcomers_question_on_the_first_page(page: Page, address: str) -> None:
    opened(page, address)
    assert re.match(r"(Yes|No|Cannot tell).* llama-3\.2-1b", answer_of(page))
    assert re.search(r"\d draft tokens? a round", answer_of(page))
    # What it takes for granted, and from where on it holds, is in the same sentence.
    assert re.search(r"[Ii]f 60\s% of its guesses are accepted", answer_of(page))
    assert re.search(r"It pays from \d+\s% on", answer_of(page))


def test_a_slider_changes_the_number_and_the_address(page: Page, address: str) -> None:
    opened(page, address)
    before = answer_of(page)
    slide(page, "Acceptance", "ArrowRight")
    expect(page.locator(ANSWER).first).not_to_have_text(before, timeout=PATIENCE_MS)
    assert "acceptance=0.61" in page.url
    shared, shown = page.url, answer_of(page)
    other = page.context.new_page()
    opened(other, shared)
    assert answer_of(other) == shown


def test_reset_goes_back_whatever_the_address_says(page: Page, address: str) -> None:
    opened(page, address)
    first = answer_of(page)
    opened(page, f"{address}/?acceptance=0.9&context=4096&target=qwen3-8b&draft=qwen3-0.6b")
    assert answer_of(page) != first
    page.locator("[data-testid=stSidebar] button", has_text="restart_alt").first.click()
    expect(page.locator(ANSWER).first).to_have_text(first, timeout=PATIENCE_MS)
    assert "acceptance" not in page.url
    assert "target" not in page.url


@pytest.mark.parametrize(
    ("path", "slider", "moves"),
    [
        *((f"{path}?acceptance=0.9", "Acceptance", 10) for path in ("", "bottleneck", "roofline")),
        *((f"{path}?acceptance=0.9", "Acceptance", 10) for path in ("break_even", "context")),
        ("row_costs?context=128", "Context (tokens)", 4),
        ("layer_skip?context=128", "Context (tokens)", 4),
        ("diffusion?target=llada2.0-mini&draft=none", "Block (tokens)", 2),
    ],
)
def test_a_picture_that_was_moved_is_the_one_that_a_link_shows(
    page: Page, address: str, path: str, slider: str, moves: int
) -> None:
    opened(page, f"{address}/{path}")
    first = picture(page)
    page.evaluate(f"document.querySelector('{CHART} svg').dataset.first = 'yes'")
    for _ in range(moves):
        slide(page, slider, "ArrowRight")
        page.wait_for_timeout(100)
    assert picture(page) != first
    # In a narrow window a layout depends by parts of a pixel on the one before it; words do not.
    for width, seen in ((1280, picture), (390, words)):
        page.set_viewport_size({"width": width, "height": 900})
        other = page.context.new_page()
        other.set_viewport_size({"width": width, "height": 900})
        opened(other, page.url)
        assert seen(page) == seen(other), f"at {width}"
        assert page.locator(f"{CHART} svg[data-first]").count() == 1, f"drawn anew at {width}"
        other.close()


CHART = "[data-testid=stVegaLiteChart]"


def picture(page: Page) -> list[str]:
    """What is drawn where, in no order, when it is still."""
    page.wait_for_selector(f"{CHART} svg text", state="attached", timeout=PATIENCE_MS)
    page.wait_for_timeout(1000)
    return page.evaluate(
        """(chart) => [...document.querySelectorAll(`${chart} svg :is(path, text)`)].map((each) =>
          ["transform", "d", "fill", "opacity", "aria-label"].map(
            (name) => each.getAttribute(name)).join("|") + each.textContent).sort()""",
        CHART,
    )


def words(page: Page) -> list[str]:
    """What can be read in the pictures, in no order, when they are still."""
    picture(page)
    return sorted(page.locator(f"{CHART} svg text").all_text_contents())


def test_each_view_is_reached_from_the_first_and_fits(page: Page, address: str) -> None:
    opened(page, address)
    for path, title in VIEWS.items():
        gone_to(page, title)
        assert page.url.removeprefix(address).split("?")[0] == f"/{path}"
        assert page.locator(TRACEBACK).count() == 0, title
        assert page.locator(MESSAGE).count() == 0, title
        for scheme, width in (("light", 390), ("dark", 390), ("dark", 1280), ("light", 1280)):
            seen_at(page, scheme, width)
            sideways = page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
            assert sideways <= 0, f"{title} at {width} in {scheme}"
            assert main_is_wider_than_its_parts(page), f"{title} at {width} in {scheme}"


def seen_at(page: Page, scheme: Any, width: int) -> None:
    """As it looks in a window of that width under that colour scheme, when all is drawn again."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(150)
    settled(page)


def main_is_wider_than_its_parts(page: Page) -> bool:
    """Whether no picture and no text of the view leaves it at the side; tables scroll inside."""
    return page.evaluate(
        """() => {
          const main = document.querySelector("[data-testid=stMain]");
          const parts = "[data-testid=stVegaLiteChart], [data-testid=stMarkdown]";
          return [...main.querySelectorAll(parts)].every(
            (part) => part.getBoundingClientRect().right <= main.getBoundingClientRect().right + 1);
        }"""
    )


def test_the_data_and_the_pictures_can_be_kept(page: Page, address: str) -> None:
    opened(page, address)
    page.get_by_text("Data, picture and command").click()
    expect(page.get_by_text(re.compile("by strategy: plain .* tok/s"))).to_be_visible()
    kept: dict[str, bytes] = {}
    for kind in ("CSV", "JSON", "SVG", "PNG"):
        with page.expect_download(timeout=PATIENCE_MS) as download:
            page.get_by_role("button", name=kind, exact=True).click()
        kept[kind] = Path(download.value.path()).read_bytes()
    rows = list(csv.DictReader(io.StringIO(kept["CSV"].decode())))
    assert rows[0]["label"] == "plain"
    assert json.loads(kept["JSON"])["command"].startswith("tokroof predict")
    assert kept["SVG"].startswith(b"<svg")
    assert kept["PNG"].startswith(b"\x89PNG")


def test_a_good_profile_becomes_a_machine_and_a_bad_one_a_message(page: Page, address: str) -> None:
    opened(page, address)
    page.locator("[data-testid=stSidebar]").get_by_text("More", exact=True).click()
    brought(page, "bad.json", b'{"schema": 1}')
    message = page.locator("[data-testid=stSidebar] [data-testid=stAlert]")
    expect(message).to_contain_text("bad.json", timeout=PATIENCE_MS)
    brought(page, "large.json", b" " * (11 * int(MB)))
    expect(page.locator("[data-testid=stFileUploader]")).to_contain_text(
        re.compile("10(.0)? ?MB or smaller"), timeout=PATIENCE_MS
    )
    document = json.loads(packaged_profile_text(DEFAULT_MACHINE)) | {"name": "brought"}
    brought(page, "good.json", json.dumps(document).encode())
    expect(page.get_by_text("brought is now among the machines")).to_be_visible(timeout=PATIENCE_MS)
    expect(message).to_have_count(0)


def brought(page: Page, name: str, content: bytes, index: int = 0) -> None:
    """Give a file to the page's uploader, in place of the one before."""
    page.locator("[data-testid=stFileUploader] input").nth(index).set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    )


def test_runs_of_ones_own_are_laid_over_the_evidence(page: Page, address: str) -> None:
    opened(page, f"{address}/evidence?of_strategy=plain&of_chip=m4")
    page.locator("[data-testid=stMain]").get_by_text("Filter, or add runs of your own").click()
    # The sidebar has the other uploader.
    brought(page, "bad.csv", b"not,a,table\n1,2,3\n", index=1)
    message = page.locator(MESSAGE)
    expect(message).to_contain_text("bad.csv", timeout=PATIENCE_MS)
    brought(page, RUNS.name, RUNS.read_bytes(), index=1)
    caution = page.locator("[data-testid=stCaptionContainer]", has_text=RUNS.name)
    expect(caution).to_be_visible(timeout=PATIENCE_MS)
    expect(message).to_have_count(0)
    settled(page)
    assert page.locator(TRACEBACK).count() == 0


def test_a_profile_of_another_schema_is_a_message_and_an_empty_folder_none(
    page: Page, address: str, home: Path
) -> None:
    folder = home / "profiles"
    folder.mkdir(exist_ok=True)
    opened(page, address)
    assert page.locator(MESSAGE).count() == 0
    document = json.loads(packaged_profile_text(DEFAULT_MACHINE))
    other = folder / "other.json"
    other.write_text(json.dumps(document | {"schema": document["schema"] + 1}))
    try:
        opened(page, f"{address}/?machine=other")
        expect(page.locator(MESSAGE)).to_contain_text("schema")
        for path, title in VIEWS.items():
            gone_to(page, title)
            assert page.locator(TRACEBACK).count() == 0, path
            if path not in ("evidence", "method"):
                expect(page.locator(MESSAGE)).to_contain_text("schema")
    finally:
        other.unlink()


def test_a_target_that_does_not_fit_is_a_message(page: Page, address: str) -> None:
    opened(page, f"{address}/bottleneck?target=llama-3.1-70b")
    expect(page.locator(MESSAGE)).to_contain_text("does not fit")
    assert page.locator("[data-testid=stVegaLiteChart]").count() == 0


def random_states(seed: int, count: int) -> list[str]:
    """Addresses of views with settings that nobody would choose."""
    rng = random.Random(seed)
    keys = [
        *("machine", "target", "target_format", "draft", "draft_format", "known", "acceptance"),
        *("rates", "task", "context", "runtime", "memory", "cache", "batch", "preset", "unheard"),
        *("longest", "spread", "formats", "runtimes", "most", "cells", "measured", "block"),
        *("rival", "block_cache", "against", "quantity", "of_strategy", "of_chip", "by", "about"),
    ]
    values = [
        *("", "0", "-1", "1e9", "nan", "none", "qwen3-4b", "llama-3.2-1b", "bf16", "2bit", "mxfp4"),
        *("0.5,x", "../../etc/passwd", "%00", "%F0%9F%A6%99", "published", "by position", "1024"),
        *("0.25=0.7,0.5=0.06", "speculative", "m4", "dream-7b", "true", "16", "Glossary"),
        *("mlx-0.31", "<script>alert(1)</script>", "hf:a/b", "m4-10core-mlx-0.32", "8bit", "[]"),
    ]
    return [
        f"{rng.choice(list(VIEWS))}?"
        + "&".join(f"{rng.choice(keys)}={rng.choice(values)}" for _ in range(rng.randint(1, 8)))
        for _ in range(count)
    ]


def test_a_random_address_is_an_answer_or_a_message(page: Page, address: str) -> None:
    for state in random_states(seed=0, count=50):
        opened(page, f"{address}/{state}")
        assert page.locator(TRACEBACK).count() == 0, state
