from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from calibrate.imports import source
from calibrate.imports.source import read_source
from model.errors import InputError


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_the_mark_says_the_encoding(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding.endswith("e") else ""
    path = tmp_path / "a.txt"
    path.write_bytes((mark + "60.25 ± 0.25\r\nnext\r").encode(encoding))
    assert read_source(str(path)).text == "60.25 ± 0.25\nnext\n"


def test_standard_input_is_read_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("±".encode("utf-16"))))
    found = read_source("-")
    assert (found.name, found.text) == ("standard input", "±")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \n", "is empty"),
        (b"fine\n60.25 \xb1 0.25\n", "line 2: is not UTF-8 (byte 11)"),
        ("no mark".encode("utf-16-le"), "holds zero bytes"),
        (b"\xff\xfea\x00b", "is not UTF-16 (byte 4)"),
        (b"x" * 11, "is larger than 0 MiB"),
    ],
)
def test_what_is_no_text_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, line: str
) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 20 if len(data) != 11 else 10)
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.txt") as error:
        read_source(str(path))
    assert line in str(error.value)


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_source(str(tmp_path))
    with pytest.raises(InputError, match="no such file"):
        read_source(str(tmp_path / "none"))
