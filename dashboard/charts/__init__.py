"""Charts: functions from records to a chart and its rows; no Streamlit, no state."""
