"""Puts a figure on the page: sentence, picture, how to read it, and everything to take along."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
import streamlit as st

from dashboard.charts.drawing import Drawing
from dashboard.figure import Figure, literally, with_code


def show(figure: Figure) -> None:
    """Draw a figure, with its data, its command and its cautions below it."""
    st.markdown(figure.sentence)
    if figure.chart is not None:
        st.vega_lite_chart(  # pyright: ignore[reportUnknownMemberType]
            spec={**json.loads(figure.chart.chart), "datasets": _tables(figure.chart)},
            # To another text belongs another chart. The marks say their own numbers.
            alt=figure.picture_name,
            key=f"chart-{figure.name}",
        )
    st.caption(figure.reading)
    if figure.where:
        st.caption(with_code(figure.where))
    for caution in figure.cautions:
        st.caption(f":material/info: {with_code(caution)}")
    _to_keep(figure)


def _tables(drawing: Drawing) -> dict[str, Any]:
    """The rows as Streamlit sends them, without a detour over pandas."""
    return {
        name: pa.Table.from_pylist(rows)  # pyright: ignore[reportUnknownMemberType]
        for name, rows in drawing.rows.items()
    }


@st.fragment
def _to_keep(figure: Figure) -> None:
    """The data, the picture and the call: made when they are opened, as most never are."""
    expander = st.expander(
        "Data, picture and command", key=f"keep-{figure.name}", on_change="rerun"
    )
    if not expander.open:
        return
    with expander:
        if figure.chart is not None:
            st.caption(literally(figure.alternative))
        st.caption("This call prints the same numbers:")
        st.code(figure.command.text, language="bash", wrap_lines=True)
        for column, (kind, (mime, made)) in zip(st.columns(4), KINDS.items(), strict=True):
            if figure.chart is None and kind in PICTURES:
                continue
            column.download_button(
                kind.upper(),
                lambda made=made: made(figure),
                f"{figure.name}.{kind}",
                mime,
                key=f"{kind}-{figure.name}",
                on_click="ignore",  # keeping a file asks nothing new
                width="stretch",
            )
        shown = figure.rows[:TABLE_ROWS]
        st.table([asdict(row) for row in shown])  # pyright: ignore[reportUnknownMemberType]
        if len(figure.rows) > len(shown):
            st.caption(f"The first {len(shown)} of {len(figure.rows)} rows; the files hold all.")


KINDS: Mapping[str, tuple[str, Callable[[Figure], str | bytes]]] = {
    "csv": ("text/csv", Figure.as_csv),
    "json": ("application/json", Figure.as_json),
    "svg": ("image/svg+xml", Figure.as_svg),
    "png": ("image/png", Figure.as_png),
}
"""What of a figure can be kept as a file: made when it is asked for, not before."""

PICTURES = ("svg", "png")
TABLE_ROWS = 60
"""A table on the page holds so many rows; the files hold all."""
