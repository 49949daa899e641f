"""Where to start from: an experiment of an article, or what the dashboard opens with."""

from __future__ import annotations

import streamlit as st

from dashboard.presets import PRESETS, opening


def start() -> None:
    """Settings to start from, and the way back to the first ones."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.selectbox(
        "Start from",
        list(PRESETS),
        index=None,
        placeholder="an experiment",
        key="preset",
        on_change=_start_from,
    )
    right.button(
        ":material/restart_alt:",
        on_click=_reset,
        help="Reset: back to the settings it opens with",
        key="reset",
    )


def _start_from() -> None:
    """Put the controls where the chosen preset has them; called before they are drawn."""
    chosen = st.session_state["preset"]
    if chosen is not None:
        st.session_state.update({**opening(), **PRESETS[chosen]})


def _reset() -> None:
    st.session_state.update({**opening(), "preset": None})
