"""Targets: what a person may name, and one clear line for what cannot be used."""

from __future__ import annotations

import io
import json
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

from model import catalog
from model.errors import InputError
from model.network.target import LARGEST_CONFIG_BYTES, load_config, load_target
from model.network.weight_format import weight_format

CONFIG = catalog.architecture_config("llama-3.2-1b")
QUANTIZED = {**CONFIG, "quantization": {"group_size": 64, "bits": 8}}


def write(folder: Path, content: object, name: str = "config.json") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def refusal(spec: str) -> str:
    with pytest.raises(InputError) as refused:
        load_target(spec)
    assert "\n" not in str(refused.value)
    return str(refused.value)


class Answer(io.BytesIO):
    """What `urlopen` would return."""


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the network answers to each address; an exception is raised."""
    known: dict[str, Any] = {}

    def urlopen(address: str, timeout: float) -> Answer:
        assert timeout <= 10
        answer = known[address]
        if isinstance(answer, Exception):
            raise answer
        return Answer(json.dumps(answer).encode())

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return known


def test_a_shipped_name_in_any_case() -> None:
    target = load_target("Llama-3.2-1B", "4bit")
    assert target.architecture.name == "llama-3.2-1b"
    assert target.total_bytes == 695_242_752


def test_without_any_format_weights_are_bf16() -> None:
    assert load_target("llama-3.2-1b").weight_format == weight_format("bf16")


def test_a_format_that_is_asked_for_wins_over_the_stated_one(tmp_path: Path) -> None:
    path = str(write(tmp_path / "mine", QUANTIZED))
    assert load_target(path).weight_format == weight_format("8bit")
    assert load_target(path, "4bit").weight_format == weight_format("4bit")


def test_32_bits_are_32_bits_everywhere() -> None:
    assert load_target("llama-3.2-1b", "fp32").vector_bytes == 4
    wide = load_target("qwen3-30b-a3b", "4bit-s32")
    assert wide.layer_formats(0)["mlp.gate"] == weight_format("8bit-s32")


def test_a_folder_is_named_after_itself(tmp_path: Path) -> None:
    folder = tmp_path / "my-llama"
    path = write(folder, CONFIG)
    for spec in (folder, path):
        target = load_target(str(spec))
        assert target.architecture.name == "my-llama"
        assert target.architecture.source == str(path)


def test_a_file_of_another_name_is_named_after_itself(tmp_path: Path) -> None:
    path = write(tmp_path, CONFIG, name="draft.json")
    assert load_target(str(path)).architecture.name == "draft"


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(CONFIG).encode())
    assert load_target(str(path)).architecture.params == CONFIG["_total_params"]


def test_a_bad_field_is_refused_with_the_file_it_is_in(tmp_path: Path) -> None:
    path = write(tmp_path, {**CONFIG, "hidden_size": -1})
    assert refusal(str(path)).startswith(f"{path}: hidden_size = -1: is below 1; ")


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"", "is not JSON (line 1, column 1: expecting value)"),
        (b'{\n "a": }', "is not JSON (line 2, column 7: expecting value)"),
        (b"\xff\xfe{}", "is not UTF-8 text (byte 0)"),
        (b"[1, 2]", "is JSON, but not an object in braces"),
        (b"[" * 200_000, "is not JSON that can be read"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not JSON that can be read"),
        (b" " * (LARGEST_CONFIG_BYTES + 1), "is larger than 8 MB"),
    ],
    ids=["empty", "broken", "utf-16", "list", "deep", "long number", "large"],
)
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, content: bytes, wrong: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert refusal(str(path)) == f"{path}: {wrong}; give a Hugging Face config.json"


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    assert refusal(str(tmp_path)) == (
        f"{tmp_path}: is a folder without a config.json; give a folder of a model, or a config.json"
    )


def test_a_file_without_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path, CONFIG)
    monkeypatch.setattr(Path, "open", refuse)
    assert refusal(str(path)) == (
        f"{path}: cannot be read (permission denied); give a readable config.json"
    )


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("qwen3-5b", "model 'qwen3-5b': is not known; did you mean qwen3-"),
        ("nothing like it", "model 'nothing like it': is not known; `tokroof models` lists all "),
        ("", "model '': is not known; "),
        ("Qwen/Qwen3-4B", "Qwen/Qwen3-4B: is not a file or folder; for Hugging Face, give hf:Qwen"),
        ("./no/config.json", "./no/config.json: is not a file or folder; give a folder or a con"),
        ("model.gguf", "model.gguf: is a file of weights, which tokroof does not read; give the "),
        ("hf:Qwen3-4B", "hf:Qwen3-4B: is not hf:owner/name; give e.g. hf:Qwen/Qwen3-4B"),
        ("hf:a/b/../c", "hf:a/b/../c: is not hf:owner/name; "),
        ("hf:../b", "hf:../b: is not hf:owner/name; "),
        ("x" * 300, f"{'x' * 300}: cannot be read (file name too long); give a readable config"),
        ("a\0b", "model 'a\\x00b': is not known; "),
    ],
)
def test_what_is_not_there_is_refused(spec: str, line: str) -> None:
    assert refusal(spec).startswith(line)


def test_hugging_face_gives_the_config_alone(answers: dict[str, Any]) -> None:
    answers["https://huggingface.co/meta/Llama-3.2-1B/resolve/main/config.json"] = QUANTIZED
    target = load_target("hf:meta/Llama-3.2-1B")
    assert target.architecture.name == "Llama-3.2-1B"
    assert target.architecture.source == "huggingface.co/meta/Llama-3.2-1B"
    assert target.weight_format == weight_format("8bit")


@pytest.mark.parametrize(
    ("failure", "wrong"),
    [
        (URLError("Name or service not known"), "(Name or service not known); check the connect"),
        (TimeoutError("timed out"), "(timed out); check the connection, or give a local folder"),
        (HTTPError("", 401, "", Message(), None), "does not exist, or needs a login; check the n"),
        (HTTPError("", 404, "", Message(), None), "has no config.json; check the name, or give a"),
        (HTTPError("", 500, "", Message(), None), "was refused by huggingface.co (status 500); "),
    ],
)
def test_offline_is_one_line_with_a_way_out(
    answers: dict[str, Any], failure: Exception, wrong: str
) -> None:
    answers["https://huggingface.co/a/b/resolve/main/config.json"] = failure
    line = refusal("hf:a/b")
    assert line.startswith("hf:a/b: ")
    assert wrong in line
    assert line.endswith("or give a local folder with its config.json instead")


def test_the_config_of_a_target_can_be_had_alone() -> None:
    document = load_config("qwen3-4b")
    assert document.name == "qwen3-4b"
    assert document.config["model_type"] == "qwen3"
