"""What holds for each of the views: words beside pictures, and messages for all that cannot be."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from model.catalog import packaged_profile_text
from model.machine.profile_store import DEFAULT_MACHINE

DASHBOARD = Path(__file__).parent.parent.parent / "dashboard"
VIEWS = sorted(path.stem for path in (DASHBOARD / "views").glob("*.py"))
# All shipped runs take seconds to predict; those of one chip do not.
FEW_RUNS = {"of_chip": "M3 Pro 14-core"}
OF_THE_TARGET = sorted({*VIEWS} - {"evidence", "calibration", "method"})
"""Views that ask about the target, and not about the machine or the model alone."""
SIDEBAR = (
    *("machine", "target", "target_format", "draft", "draft_format", "known", "acceptance"),
    *("rates", "task", "context", "runtime", "memory", "cache", "batch", "preset"),
    *("acceptance_draft_head", "acceptance_block_drafter", "acceptance_layer_skip"),
    *("acceptance_prompt_lookup", "profile_file", "reset"),
)
OWN = {
    "which_trick": (),
    "bottleneck": (),
    "row_costs": ("formats", "runtimes", "most"),
    "roofline": (),
    "break_even": ("longest", "spread"),
    "context": (),
    "layer_skip": ("cells", "measured"),
    "diffusion": ("block", "rival", "denoiser", "block_cache"),
    "evidence": ("quantity", "of_strategy", "of_runtime", "of_model", "of_trust", "by"),
    "calibration": ("against",),
    "method": ("about",),
}
WRONG = ("", "-1", "1e9", "nan", "[]", "%00\0", "<b>🦙", "x" * 3000)


def opened(view: str, **settings: str) -> AppTest:
    app = AppTest.from_file(str(DASHBOARD / "app.py"), default_timeout=60)
    for key, value in ({**FEW_RUNS, **settings} if view == "evidence" else settings).items():
        app.query_params[key] = value
    return app.switch_page(f"views/{view}.py").run()


def check_says_something(app: AppTest) -> None:
    """No traceback; an answer or messages of one line each."""
    assert not app.exception
    assert app.markdown or app.error
    for message in app.error:
        assert len(message.value.splitlines()) == 1
        assert "Traceback" not in message.value
        assert "Error" not in message.value


def test_there_are_eleven_and_each_setting_of_theirs_is_listed() -> None:
    assert len(VIEWS) == 11
    assert sorted(OWN) == VIEWS
    for view, keys in OWN.items():
        text = (DASHBOARD / "views" / f"{view}.py").read_text()
        listed = set(re.findall(r'key="(\w+)"', text))
        assert listed == {key for key in keys if not key.startswith("of_")}, view


@pytest.mark.parametrize("view", VIEWS)
def test_it_opens_on_an_answer_and_says_what_every_picture_shows(view: str) -> None:
    app = opened(view)
    check_says_something(app)
    assert not app.error
    assert app.header[0].value
    pictures = app.get("vega_lite_chart")
    assert bool(pictures) is (view != "method")
    for picture in pictures:
        assert len(picture.proto.alt.split()) > 2
        assert len(app.caption) >= 1


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("view", VIEWS)
def test_settings_of_another_kind_are_an_answer_or_a_message(view: str, value: str) -> None:
    # A wrong model would hide what the others do.
    keys = [key for key in (*SIDEBAR, *OWN[view]) if key not in ("target", "draft")]
    check_says_something(opened(view, **dict.fromkeys(keys, value)))


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("view", OF_THE_TARGET)
def test_a_model_that_is_none_is_a_message(view: str, value: str) -> None:
    app = opened(view, target=value, draft=value)
    check_says_something(app)
    assert app.error or not value


@pytest.mark.parametrize("view", VIEWS)
def test_a_target_that_does_not_fit_is_said_where_it_is_asked_about(view: str) -> None:
    app = opened(view, target="llama-3.1-70b")
    check_says_something(app)
    words = [*app.error, *app.markdown, *app.caption]
    if view in OF_THE_TARGET:
        assert any("does not fit" in each.value.replace("\\", "") for each in words)
    else:
        assert not app.error


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("changes", [{"schema": 99}, {"constants": None}])
def test_a_calibration_that_cannot_be_read_is_a_message(
    view: str, changes: dict[str, Any], home: Path
) -> None:
    folder = home / "profiles"
    folder.mkdir()
    document = json.loads(packaged_profile_text(DEFAULT_MACHINE)) | changes
    (folder / "mine.json").write_text(json.dumps(document))
    app = opened(view)
    check_says_something(app)
    if view in (*OF_THE_TARGET, "calibration"):
        assert len(app.error) == 1
        assert "mine" in app.error[0].value
    others = opened(view, machine=DEFAULT_MACHINE)
    check_says_something(others)
    assert not others.error


@pytest.mark.parametrize("what", ["missing", "a file", "a folder of others' files"])
def test_a_home_without_calibrations_opens_on_the_packaged_machine(
    what: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = home / "elsewhere"
    if what == "a file":
        place.write_text("not a folder")
    elif what == "a folder of others' files":
        (place / "profiles" / "folder.json").mkdir(parents=True)
        (place / "profiles" / "notes.txt").write_text("none of ours")
    monkeypatch.setenv("TOKROOF_HOME", str(place))
    app = opened("which_trick")
    check_says_something(app)
    assert not app.error
    assert app.selectbox(key="machine").value == DEFAULT_MACHINE


def random_settings(rng: random.Random, view: str) -> dict[str, str]:
    keys = (*SIDEBAR, *OWN[view])
    values = (
        *WRONG,
        *("qwen3-4b", "llama-3.2-1b", "bf16", "2bit", "mxfp4", "8bit", "16", "1024", "0.5,0.4"),
        *("several", "published", "speculative", "mlx-0.31", "m4-10core-mlx-0.32", "speedup"),
        *("h200-mlx-0.32.4", "gpt-oss-120b", "llada-8b", "code", "0.25=0.7,0.5=0.06", "Glossary"),
    )
    return {rng.choice(keys): rng.choice(values) for _ in range(rng.randint(1, 8))}


@pytest.mark.parametrize("seed", range(50))
def test_a_random_address_is_an_answer_or_a_message(seed: int) -> None:
    rng = random.Random(seed)
    view = rng.choice(VIEWS)
    check_says_something(opened(view, **random_settings(rng, view)))
