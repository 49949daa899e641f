"""Charts: functions from rows to `alt.Chart`; no Streamlit, no state, no numbers of their own."""
