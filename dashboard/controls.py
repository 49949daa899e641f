"""The sidebar: widgets in, one frozen Selection out; nothing else reads the session's state.

Every setting is bound to the address, so that a link shows what its sender saw.
"""

from __future__ import annotations

import streamlit as st

from dashboard.answers import Selection
from model.catalog import architecture_names
from model.machine.profile_store import DEFAULT_MACHINE, machine_names, own_profiles
from model.network.weight_format import FORMAT_NAMES

DEFAULT = Selection()
CONTEXTS = (0, *(2**power for power in range(7, 18)))
OTHER_MODEL = "A name from the list, a folder with a config.json, or hf:owner/name"


def show() -> None:
    """Draw the controls in the sidebar, and keep what they say for the views."""
    with st.sidebar:
        machine = _machine()
        target, target_format = _model("Target", "target", DEFAULT.target, DEFAULT.target_format)
        draft, draft_format = _model("Draft", "draft", DEFAULT.draft, DEFAULT.draft_format)
        acceptance = st.slider(
            "Acceptance of a draft token",
            min_value=0.0,
            max_value=1.0,
            value=DEFAULT.acceptance,
            step=0.01,
            help="Probability that it is accepted, given that all before it in the round were.",
            key="acceptance",
            bind="query-params",
        )
        context = st.select_slider(
            "Context (tokens)", CONTEXTS, DEFAULT.context, key="context", bind="query-params"
        )
        remote = any(spec.startswith("hf:") for spec in (target, draft))
        fetch = remote and st.checkbox("Fetch config.json from huggingface.co")
    st.session_state["selection"] = Selection(
        machine=machine,
        target=target,
        target_format=target_format,
        draft=draft,
        draft_format=draft_format,
        acceptance=acceptance,
        context=context,
        fetch=fetch,
    )


def selection() -> Selection:
    """What the controls say in this run."""
    return st.session_state["selection"]


def _machine() -> str | None:
    """The machine, or None for the one that is chosen when none is."""
    names = list(dict.fromkeys(machine_names()))
    default = next(iter(own_profiles()), DEFAULT_MACHINE)
    chosen = st.selectbox(
        "Machine", names, names.index(default), key="machine", bind="query-params"
    )
    return None if chosen == default else chosen


def _model(title: str, key: str, spec: str, format_name: str) -> tuple[str, str]:
    """A model and its weight format."""
    names = architecture_names()
    left, right = st.columns([5, 3])
    chosen = left.selectbox(
        title,
        names,
        names.index(spec),
        help=OTHER_MODEL,
        accept_new_options=True,
        key=key,
        bind="query-params",
    )
    stored_as = right.selectbox(
        "Format",
        FORMAT_NAMES,
        FORMAT_NAMES.index(format_name),
        key=f"{key}_format",
        bind="query-params",
    )
    return chosen, stored_as
