"""What does checking more tokens cost?"""

import streamlit as st

from dashboard import controls
from dashboard.figures.row_costs import RowSettings, row_costs
from dashboard.show import show
from model.machine.kernels.releases import known_releases

MOST = (16, 32, 64)
FORMATS = ("4bit", "8bit", "bf16")
SERIES = tuple(dict.fromkeys(f"mlx-{major}.{minor}" for major, minor, _ in known_releases()))[-3:]

left, middle, right = st.columns(3)
formats = left.pills(
    "Beside the target's format",
    FORMATS,
    selection_mode="multi",
    default=FORMATS,
    key="formats",
    bind="query-params",
)
runtimes = middle.pills(
    "Beside the runtime",
    SERIES,
    selection_mode="multi",
    help="The same machine under other MLX releases, kernel by kernel.",
    key="runtimes",
    bind="query-params",
)
most = right.select_slider(
    "Rows up to",
    MOST,
    RowSettings().most,
    help="A row is a token that a pass works on: checking a draft of k tokens takes k + 1 rows.",
    key="most",
    bind="query-params",
)
settings = RowSettings(formats=tuple(formats or ()), runtimes=tuple(runtimes or ()), most=most)
show(row_costs(controls.selection().without_acceptances, settings))
