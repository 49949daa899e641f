"""Calibration: what do the constants rest on?"""

import streamlit as st

from dashboard import controls, uploads
from dashboard.figures.calibration import (
    CalibrationSettings,
    calibration,
    drift_over_time,
    sample_residuals,
)
from dashboard.selection import Selection
from dashboard.show import show
from model.machine.profile_store import machine_names

NOTHING = "nothing"

uploaded = uploads.profiles()
chosen = st.selectbox(
    "Compare with",
    [NOTHING, *uploaded, *machine_names()],
    help="Another profile: of another day, another release of MLX, or another machine. Profiles "
    "from files are added in the sidebar, under More.",
    key="against",
    bind="query-params",
)
against = "" if chosen == NOTHING else str(uploaded.get(chosen, chosen))
# The target of the sidebar is not asked about here, so it cannot refuse the page.
selection = Selection(machine=controls.selection().machine)
show(calibration(selection, CalibrationSettings(against=against)))
found = [figure for figure in (sample_residuals(selection), drift_over_time(selection)) if figure]
for figure in found:
    st.subheader(figure.name.capitalize())
    show(figure)
if not found:
    st.caption("This profile keeps no samples of its own; *Evidence* shows it on published runs.")
