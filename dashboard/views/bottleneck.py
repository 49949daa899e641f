"""Where did the bottleneck go? The time of an output token by what it is spent on."""

from __future__ import annotations

import streamlit as st

from dashboard import charts, controls, present
from dashboard.answers import answer

found = answer(controls.selection())
totals = present.total_rows(found.fitting)

st.markdown(present.bottleneck(found))
st.altair_chart(
    charts.token_times(present.part_rows(found.fitting), totals),
    alt=f"Time per output token, by strategy: {'; '.join(row.in_words for row in totals)}.",
)
st.caption(
    "A bar is a round over the tokens it commits: its parts sum to the time per output token. "
    "Dashed: plain decoding."
)
st.caption(present.literally(found.where))
for caution in present.cautions(found):
    st.caption(caution)
