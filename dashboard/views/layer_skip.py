"""Layer skip: which layers could be left out?"""

import streamlit as st

from dashboard import controls
from dashboard.charts.layer_skip import SHOWN
from dashboard.choice import choose_one
from dashboard.figures.layer_skip import SkipSettings, layer_skip
from dashboard.show import show

NAMES = dict(zip(SHOWN, ("Needed", "At most", "Measured"), strict=True))

left, right = st.columns([3, 2])
with left:
    shown = choose_one(
        "Colour by",
        NAMES,
        key="cells",
        about="Needed: the acceptance at which it begins to pay. At most: the speedup if every "
        "draft token is accepted. Measured: the speedup with the acceptances beside.",
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
