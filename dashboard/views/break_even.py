"""Break-even: how often must the draft be right?"""

import streamlit as st

from dashboard import controls
from dashboard.figures.break_even import BreakEvenSettings, break_even
from dashboard.show import show

LONGEST = (4, 8, 16, 32)

left, right = st.columns(2)
longest = left.select_slider(
    "Draft lengths up to",
    LONGEST,
    BreakEvenSettings().longest,
    help="Tokens that the draft guesses before the target checks them: k.",
    key="longest",
    bind="query-params",
)
spread = right.slider(
    "Your acceptance may be off by (±)",
    min_value=0.0,
    max_value=0.3,
    step=0.01,
    help="How far the acceptance in the sidebar may be off. Published acceptances have the range "
    "of their pairs instead.",
    key="spread",
    bind="query-params",
)
show(break_even(controls.selection(), BreakEvenSettings(longest=longest, spread=spread)))
