"""Layer skip: which layers could be left out?"""

import streamlit as st

from dashboard import controls
from dashboard.charts.layer_skip import SHOWN
from dashboard.figures.layer_skip import SkipSettings, layer_skip
from dashboard.show import show

NAMES = dict(zip(SHOWN, ("Acceptance needed", "Speedup at most", "As measured"), strict=True))

left, right = st.columns([3, 2])
shown = left.segmented_control(
    "Colour",
    list(NAMES),
    default="needed_acceptance",
    format_func=NAMES.__getitem__,
    required=True,
    help="Acceptance: the probability that a draft token is accepted, given that all before it "
    "were. At most: every draft token is accepted.",
    key="cells",
    bind="query-params",
)
measured = right.text_input(
    "Measured acceptances, by skipped share",
    placeholder="0.25=0.7,0.5=0.06",
    help="Share of the layers = acceptance, two or more with commas. Between them it is "
    "interpolated; beyond the largest share nothing is said.",
    key="measured",
    bind="query-params",
)
settings = SkipSettings(shown=shown, measured=measured.replace(" ", ""))
show(layer_skip(controls.selection().without_acceptances, settings))
