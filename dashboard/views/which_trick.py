"""Which trick pays here? Every strategy's speed on one axis, and the answer in a sentence."""

from __future__ import annotations

import streamlit as st

from dashboard import charts, controls, present
from dashboard.answers import answer

found = answer(controls.selection())
rows = present.speed_rows(found.fitting)

st.markdown(present.which_trick(found))
st.altair_chart(
    charts.speeds(rows),
    alt=f"Speed with its 90 % interval, by strategy: {'; '.join(row.in_words for row in rows)}.",
)
st.caption(
    "Dot: estimate. Bar: 90 % interval. Dashed: plain decoding. The verdict compares both on the "
    "same draws of the machine's constants, so bars that overlap may still be a sure win."
)
st.caption(present.literally(found.where))
for caution in present.cautions(found):
    st.caption(caution)
