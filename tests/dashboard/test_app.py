"""The dashboard opens on an answer, a link opens on another, and every refusal is one message."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df
from streamlit.testing.v1 import AppTest

import tokroof
from dashboard.answers import predicted, refuse_fetching
from dashboard.figures.which_trick import which_trick
from dashboard.selection import Selection
from model.catalog import packaged_profile_text
from model.errors import InputError
from model.machine.profile_store import DEFAULT_MACHINE, choose_profile
from model.network.target import load_target
from model.prediction.prediction import predict
from model.strategies.plain import Plain

ROOT = Path(__file__).parent.parent.parent
APP = ROOT / "dashboard" / "app.py"
VIEWS = {"which_trick": "Which trick pays here?", "bottleneck": "Where did the bottleneck go?"}


def opened(**settings: str) -> AppTest:
    """The dashboard as a link with these settings opens it."""
    app = AppTest.from_file(str(APP), default_timeout=60)
    for key, value in settings.items():
        app.query_params[key] = value
    return app.run()


def calibrated(home: Path, **changes: Any) -> None:
    """A calibration of this user: the packaged one with changes."""
    document = json.loads(packaged_profile_text(DEFAULT_MACHINE)) | changes
    folder = home / "profiles"
    folder.mkdir(exist_ok=True)
    (folder / f"{document['name']}.json").write_text(json.dumps(document))


def charts_of(app: AppTest) -> list[Any]:
    return [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]


def rows_of(chart: Any) -> dict[str, dict[str, Any]]:
    """What the chart was given to draw, by label."""
    sent: Any = convert_arrow_bytes_to_pandas_df(chart.proto.datasets[0].data.data)
    return {row["label"]: row for row in sent.to_dict("records")}


def test_it_opens_on_an_answer_without_any_setting() -> None:
    app = opened()
    assert not app.exception
    assert not app.error
    assert app.header[0].value == VIEWS["which_trick"]
    assert app.markdown[0].value == which_trick(Selection()).sentence
    assert len(charts_of(app)) == 1
    assert any("never calibrated" in caption.value for caption in app.caption)


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_keeps_the_controls_and_says_what_its_chart_shows(view: str) -> None:
    app = opened(acceptance="0.8")
    app.switch_page(f"views/{view}.py").run()
    assert not app.exception
    assert app.header[0].value == VIEWS[view]
    assert app.slider(key="acceptance").value == 0.8
    [chart] = app.get("vega_lite_chart")
    assert chart.proto.alt.endswith(", by strategy")


def test_what_reset_puts_back_is_what_it_opens_with() -> None:
    app = opened(acceptance="0.9", context="4096", draft="llama-3.2-3b", batch="4", cache="8bit")
    assert app.session_state["selection"] != Selection()
    app.button(key="reset").click().run()
    assert not app.exception
    assert app.session_state["selection"] == Selection()


def test_a_control_changes_the_answer() -> None:
    app = opened()
    before = app.markdown[0].value
    app.slider(key="acceptance").set_value(0.9).run()
    assert app.markdown[0].value == which_trick(Selection(acceptance="0.9")).sentence != before


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"target": "lama-3.1-8b"}, "did you mean llama"),
        ({"target": "llama-3.1-70b"}, "does not fit: needs"),
        ({"target": "llama-3-8b", "context": "131072"}, "beyond the 8192 tokens"),
        ({"draft": "hf:mlx-community/some-model"}, "nothing is fetched unasked"),
        ({"target": "\0" + "x" * 300}, "is not known"),
    ],
)
def test_a_refusal_is_one_message_and_no_chart(settings: dict[str, str], says: str) -> None:
    app = opened(**settings)
    assert not app.exception
    assert charts_of(app) == []
    [message] = app.error
    assert says in message.value.replace("\\", "")


def test_a_draft_that_speaks_other_tokens_leaves_the_other_tricks() -> None:
    app = opened(draft="qwen3-0.6b")
    assert not app.error
    assert "qwen3-0.6b cannot draft here" in app.markdown[0].value
    assert "vocabulary" in app.markdown[0].value
    assert len(charts_of(app)) == 1


def test_a_refusal_keeps_the_controls_with_which_to_put_it_right() -> None:
    app = opened(target="llama-3.1-70b")
    app.switch_page("views/bottleneck.py").run()
    assert len(app.error) == 1
    app.selectbox(key="target").set_value("qwen3-4b").run()
    assert not app.error
    assert len(charts_of(app)) == 1


def test_a_draft_that_does_not_fit_beside_its_target_leaves_plain_decoding() -> None:
    app = opened(target="qwen3-14b", draft="qwen3-8b")
    assert not app.exception
    assert "qwen3-8b as a draft does not fit: needs" in app.markdown[0].value
    [chart] = app.get("vega_lite_chart")
    rows = rows_of(chart)
    assert "does not fit" in rows["speculative k=1"]["verdict"]
    assert rows["speculative k=1"]["place"] > rows["prompt-lookup"]["place"]
    app.switch_page("views/bottleneck.py").run()
    [chart] = app.get("vega_lite_chart")
    assert not any("speculative" in label for label in rows_of(chart))


def test_a_format_that_was_never_measured_is_a_message(home: Path) -> None:
    document = json.loads(packaged_profile_text(DEFAULT_MACHINE))
    laws = [law for law in document["laws"] if law["format"] == "affine"]
    calibrated(home, name="mine", laws=laws)
    app = opened(target_format="mxfp4")
    [message] = app.error
    assert "was never measured on mine" in message.value.replace("\\", "")


def test_a_calibration_that_cannot_be_read_is_a_message_and_others_can_be_chosen(
    home: Path,
) -> None:
    calibrated(home, name="mine", laws=None)
    app = opened()
    assert len(app.error) == 1
    assert not app.exception
    app.selectbox(key="machine").set_value(DEFAULT_MACHINE).run()
    assert not app.error
    assert len(charts_of(app)) == 1


def test_a_machine_with_wide_activations_holds_wide_networks(home: Path) -> None:
    calibrated(home, name="mine", activation_bytes=4)
    profile = choose_profile(None).profile
    wide = load_target("llama-3.1-8b", "4bit").in_float32()
    expected = predict(Plain(), wide, profile, context=1024)
    assert predicted(Selection()).predictions[0] == expected
    assert "4bit-s32" in which_trick(Selection()).where


def test_a_new_calibration_is_seen_at_once(home: Path) -> None:
    assert "never calibrated" in predicted(Selection()).choice.note
    calibrated(home, name="mine")
    first = predicted(Selection())
    assert first.choice.note.endswith("last calibration, mine")
    calibrated(home, name="mine", residual_log=0.5)
    again = predicted(Selection())
    assert again.predictions[0].tokens_per_s == first.predictions[0].tokens_per_s
    assert again.predictions[0].interval_90 != first.predictions[0].interval_90


def test_a_question_is_computed_once() -> None:
    assert predicted(Selection()) is predicted(Selection())


def test_a_link_cannot_write_markdown_into_a_message() -> None:
    app = opened(target="![x](http://example.org/x.png)")
    [message] = app.error
    assert "\\!\\[x\\]\\(" in message.value


def test_a_remote_model_is_fetched_only_when_the_box_is_ticked() -> None:
    app = opened(target="hf:some/model")
    assert len(app.error) == len(app.checkbox) == 1
    with pytest.raises(InputError, match="nothing is fetched unasked"):
        refuse_fetching(Selection(target="hf:some/model"))
    refuse_fetching(Selection(target="hf:some/model", fetch=True))


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert tokroof.main(["dashboard", "--port", str(port)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"tokroof dashboard: port {port}: is in use; give another with --port\n"
    )


@pytest.mark.parametrize("port", ["0", "65536", "web", "-1"])
def test_what_is_no_port_is_one_line(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["dashboard", f"--port={port}"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_it_serves_this_machine_alone_and_ends_quietly(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tokroof", "dashboard", "--no-browser", "--port", str(port)]
    environment = {**os.environ, "HOME": str(home), "STREAMLIT_SERVER_ADDRESS": "0.0.0.0"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:  # fmt: skip
        try:
            assert answers(f"http://127.0.0.1:{port}/_stcore/health")
            server.send_signal(signal.SIGINT)
            out, err = server.communicate(timeout=10)
        finally:
            server.kill()
    assert server.returncode == 0
    assert f"http://127.0.0.1:{port}" in out
    assert "0.0.0.0" not in out + err
    assert "Traceback" not in out + err


def answers(address: str, patience_s: float = 20.0) -> bool:
    """Whether a server answers there before patience runs out."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            with urlopen(address, timeout=1) as reply:
                return reply.status == 200
        except OSError:
            time.sleep(0.1)
    return False
