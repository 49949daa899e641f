"""Evidence: how well does it predict?"""

from dataclasses import asdict

import streamlit as st

from calibrate.comparison import SPEEDUP, THROUGHPUT
from dashboard import controls, uploads
from dashboard.choice import alike, choose_one
from dashboard.figures.evidence import EvidenceSettings, errors, evidence
from dashboard.scores import shipped_scores, values
from dashboard.selection import Selection
from dashboard.show import show

ALL = "all"
ASKED = {
    "strategy": "Strategy",
    "chip": "Chip",
    "runtime": "Runtime",
    "model": "Model",
    "trust": "Trust",
}
ERRORS_BY = ("chip", "strategy", "runtime", "model", "trust")
LABELS = {THROUGHPUT: "Speed", SPEEDUP: "Speedup"}

quantity = choose_one(
    "Compare",
    LABELS,
    key="quantity",
    about="Tokens per second of a run, or how much faster than plain decoding it was.",
)
with st.expander("Filter, or add runs of your own"):
    where: list[tuple[str, str]] = []
    for column, name in zip(st.columns(len(ASKED)), ASKED, strict=True):
        value = column.selectbox(
            ASKED[name], [ALL, *values(name)], key=f"of_{name}", bind="query-params"
        )
        if value != ALL:
            where.append((name, value))
    own = uploads.runs_uploader()
bar = st.empty()
shipped_scores(
    (("quantity", quantity), *where),
    lambda done, total: bar.progress(done / total, f"Predicting run {done} of {total}"),
)
bar.empty()
# The target of the sidebar is not asked about here, so it cannot refuse the page.
selection = Selection(machine=controls.selection().machine)
settings = EvidenceSettings(quantity=quantity, where=tuple(where), own=own)
figure = evidence(selection, settings)
show(figure)
st.subheader("Run by run")
st.dataframe(  # pyright: ignore[reportUnknownMemberType]
    [asdict(row) for row in figure.rows],
    column_config={
        "label": st.column_config.TextColumn("run", width="medium"),
        "measured": st.column_config.NumberColumn(format="%.4g"),
        "predicted": st.column_config.NumberColumn(format="%.4g"),
        "error_percent": st.column_config.NumberColumn("error (%)", format="%+.1f"),
        "low": st.column_config.NumberColumn("90 % from", format="%.4g"),
        "high": st.column_config.NumberColumn("to", format="%.4g"),
        "in_interval": st.column_config.CheckboxColumn("inside"),
        "source": st.column_config.LinkColumn(
            "source", width="small", display_text=r"https?://(?:github\.com/)?([^/]+(?:/[^/]+)?)"
        ),
    },
    column_order=[
        *("label", "measured", "predicted", "error_percent", "source", "low", "high"),
        *("in_interval", "refused", "fit", "trust", "locator", "whose", "id"),
    ],
    hide_index=True,
    height=320,
)
st.subheader("Error by group")
by = choose_one("Group by", alike(*ERRORS_BY), key="by")
show(errors(selection, EvidenceSettings(quantity=quantity, where=tuple(where), by=by)))
