"""Files that a person brings: checked, kept for this session beside others, never executed."""

from __future__ import annotations

import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

import streamlit as st

from dashboard.figure import literally
from dashboard.scores import OwnFile, own_runs
from model.errors import InputError
from model.machine.profile_file import profile_from_json
from model.machine.profile_store import check_profile_name
from model.units import MB
from model.whole_file import replace_file

MOST_MB = 10
"""More than any profile or file of runs has, and less than would hold a page up."""


def profiles() -> dict[str, Path]:
    """The profiles of this session's uploads, by the names they are offered under."""
    return {f"{path.stem} (uploaded)": path for path in st.session_state.get("uploads", ())}


def profile_uploader() -> None:
    """Take a profile, and offer it among the machines from now on."""
    file = st.file_uploader("Profile of another machine (.json)", "json", key="profile_file")
    if file is None:
        return
    try:
        path = kept_profile(file.getvalue(), file.name)
    except InputError as error:
        st.error(literally(str(error)))
        return
    known = st.session_state.setdefault("uploads", [])
    if path not in known:
        known.append(path)
        st.rerun()
    st.caption(f"{literally(path.stem)} is now among the machines.")


def kept_profile(content: bytes, name: str) -> Path:
    """Check a profile and keep it where `--machine` can read it.

    Raises:
        InputError: it is too large, no text, or no profile of this version.
    """
    text = checked_text(content, name)
    profile = profile_from_json(text, name)
    return kept(text, f"{check_profile_name(profile.header.name)}.json")


def runs_uploader() -> OwnFile | None:
    """Take a file of runs, for as long as it is there."""
    file = st.file_uploader(
        "Your own runs: a table like the published one (.csv, .jsonl), or what `tokroof run` wrote",
        ["csv", "jsonl"],
        key="runs_file",
    )
    if file is None:
        return None
    try:
        return kept_runs(file.getvalue(), file.name)
    except InputError as error:
        st.error(literally(str(error)))
        return None


def kept_runs(content: bytes, name: str) -> OwnFile:
    """Check a file of runs and keep it where it can be read again.

    Raises:
        InputError: it is too large, no text, or not of runs; file, row and column are named.
    """
    own = OwnFile(path=kept(checked_text(content, name), "runs"), name=name)
    own_runs(own)
    return own


def checked_text(content: bytes, name: str) -> str:
    """The text of an upload.

    Raises:
        InputError: it is too large, or not UTF-8.
    """
    if len(content) > MOST_MB * MB:
        wrong = f"has {len(content) / MB:.1f} MB"
        raise InputError(name, wrong, f"give a file of at most {MOST_MB} MB")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        wrong = f"is not UTF-8 text (byte {error.start})"
        raise InputError(name, wrong, "give a text file in UTF-8") from None


def kept(text: str, name: str) -> Path:
    """A copy of an upload in this server's own folder, apart from others of its name."""
    path = _folder() / sha256(text.encode()).hexdigest()[:16] / name
    replace_file(path, text)
    return path


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="tokroof-uploads-"))
