"""Method: the equations, and the words."""

import streamlit as st

from dashboard.choice import alike, choose_one
from dashboard.equations import SECTIONS, described
from model.catalog import glossary_text

GLOSSARY = "Glossary"

chosen = choose_one("Show", alike(*SECTIONS, GLOSSARY), key="about")
if chosen == GLOSSARY:
    st.markdown("One word per idea; a name in code letters is the one that the program uses.")
    st.markdown(glossary_text())
else:
    st.markdown("These are the words of the modules that compute it.")
    for index, module in enumerate(SECTIONS[chosen]):
        found = described(module)
        with st.expander(found.title, expanded=index == 0):
            st.markdown(found.text)
            st.caption(f"`{module}`")
