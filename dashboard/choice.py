"""One of a few settings, as buttons that stand side by side."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st


def choose_one(label: str, names: Mapping[str, str], *, key: str, about: str | None = None) -> str:
    """The setting that is chosen, of those that have a name; the first when the view opens.

    An address can leave it empty, which the buttons cannot; then it is the first as well.
    """
    first = next(iter(names))
    chosen = st.segmented_control(
        label,
        list(names),
        default=first,
        format_func=names.__getitem__,
        required=True,
        help=about,
        key=key,
        bind="query-params",
    )
    return chosen or first


def alike(*names: str) -> dict[str, str]:
    """Settings that are called what they are."""
    return {name: name for name in names}
