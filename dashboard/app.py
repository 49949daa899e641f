"""The frame of every view: title, navigation, controls, and what is said where there is no answer.

Run by `tokroof dashboard`. A view is a file in views/ and a line in VIEWS.
"""

from __future__ import annotations

import streamlit as st
from altair.utils.schemapi import debug_mode

from dashboard import controls
from dashboard.figure import literally
from model.errors import InputError

VIEWS = {
    "Compare": {
        "views/which_trick.py": "Which trick pays here?",
        "views/bottleneck.py": "Where did the bottleneck go?",
    },
    "Understand": {
        "views/row_costs.py": "What does checking more tokens cost?",
        "views/roofline.py": "Roofline: what holds a pass back?",
    },
    "Plan": {
        "views/break_even.py": "Break-even: how often must a draft be right?",
        "views/context.py": "Context and memory: how fast, and what fits?",
        "views/layer_skip.py": "Layer skip: could a model draft for itself?",
        "views/diffusion.py": "Diffusion: when does denoising beat writing?",
    },
    "Trust": {
        "views/evidence.py": "Evidence: how well does it predict?",
        "views/calibration.py": "Calibration: what do the constants rest on?",
        "views/method.py": "Method: the equations and the words",
    },
}

# The titles by the names that the navigation has room for: what is before a colon.
QUESTIONS = {title.partition(":")[0]: title for views in VIEWS.values() for title in views.values()}

st.set_page_config(page_title="tokroof", layout="wide")
pages = {
    section: [st.Page(file, title=title.partition(":")[0]) for file, title in views.items()]
    for section, views in VIEWS.items()
}
page = st.navigation(pages, position="top")
st.header(QUESTIONS[page.title])
try:
    controls.show()
    with debug_mode(arg=False):  # tests hold every chart to its schema; a page need not do it again
        page.run()
except InputError as error:
    st.error(literally(str(error)))
