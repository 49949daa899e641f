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
from tests.browser.driving import ANSWER, PATIENCE_MS, answer_of, settled, slide

pytestmark = pytest.mark.browser

VIEWS = {
    "": "Which trick pays here?",
    "bottleneck": "Where did the bottleneck go?",
}
"""The path of each view, and its title."""


def opened(page: Page, address: str) -> Page:
    page.goto(address)
    settled(page)
    return page


def test_it_answers_the_newcomers_question_on_the_first_page(page: Page, address: str) -> None:
    opened(page, address)
    assert re.match(r"(Yes|No|Cannot tell).* llama-3\.2-1b", answer_of(page))
    assert re.search(r"\d draft tokens? a round", answer_of(page))


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


@pytest.mark.parametrize("path", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_each_view_opens_and_fits(
    page: Page, address: str, path: str, scheme: Any, width: int
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, f"{address}/{path}")
    expect(page.get_by_role("heading", name=VIEWS[path])).to_be_visible(timeout=PATIENCE_MS)
    assert page.locator("[data-testid=stException]").count() == 0
    sideways = page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
    assert sideways <= 0


def test_each_view_is_reached_from_the_first(page: Page, address: str) -> None:
    opened(page, address)
    links = page.locator("[data-testid=stTopNavLinkContainer] a")
    sections = page.locator("[data-testid=stTopNavSection]")
    assert links.count() + sections.count() > 0


def test_the_data_and_the_pictures_can_be_kept(page: Page, address: str) -> None:
    opened(page, address)
    page.get_by_text("Data, picture and command").click()
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


def test_a_good_profile_becomes_a_machine_and_a_bad_one_a_message(
    page: Page, address: str, tmp_path: Path
) -> None:
    opened(page, address)
    page.locator("[data-testid=stSidebar]").get_by_text("More", exact=True).click()
    upload = page.locator("[data-testid=stFileUploader] input").first
    bad = tmp_path / "bad.json"
    bad.write_text('{"schema": 1}')
    upload.set_input_files(bad)
    expect(page.locator("[data-testid=stAlert]")).to_contain_text("bad.json", timeout=PATIENCE_MS)
    good = tmp_path / "good.json"
    document = json.loads(packaged_profile_text(DEFAULT_MACHINE)) | {"name": "brought"}
    good.write_text(json.dumps(document))
    upload.set_input_files(good)
    expect(page.get_by_text("brought is now among the machines")).to_be_visible(timeout=PATIENCE_MS)


def random_states(seed: int, count: int) -> list[str]:
    """Addresses of views with settings that nobody would choose."""
    rng = random.Random(seed)
    keys = [
        *("machine", "target", "target_format", "draft", "draft_format", "known", "acceptance"),
        *("rates", "task", "context", "runtime", "memory", "cache", "batch", "preset", "unheard"),
    ]
    values = [
        *("", "0", "-1", "1e9", "nan", "none", "qwen3-4b", "llama-3.2-1b", "bf16", "2bit", "mxfp4"),
        *("0.5,x", "../../etc/passwd", "%00", "%F0%9F%A6%99", "published", "by position", "1024"),
        *("mlx-0.31", "<script>alert(1)</script>", "hf:a/b", "m4-10core-mlx-0.32", "8bit", "[]"),
    ]
    return [
        f"{rng.choice(list(VIEWS))}?"
        + "&".join(f"{rng.choice(keys)}={rng.choice(values)}" for _ in range(rng.randint(1, 6)))
        for _ in range(count)
    ]


def test_a_random_address_is_an_answer_or_a_message(page: Page, address: str) -> None:
    for state in random_states(seed=0, count=50):
        page.goto(f"{address}/{state}")
        settled(page)
        assert page.locator("[data-testid=stException]").count() == 0, state
