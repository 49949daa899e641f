"""Diffusion: which answers are faster denoised?"""

import streamlit as st

from dashboard import controls
from dashboard.figures.diffusion import DiffusionSettings, denoises, diffusion
from dashboard.presets import DIFFUSION
from dashboard.show import show
from model.catalog import architecture_names

ITSELF = "its own shape"
BLOCKS = (8, 16, 32, 64, 128, 256)

selection = controls.selection().without_acceptances
if denoises(selection):
    left, middle, right = st.columns([2, 2, 1], vertical_alignment="bottom")
    block = left.select_slider(
        "Block (tokens)",
        BLOCKS,
        32,
        help="Tokens that are denoised together.",
        key="block",
        bind="query-params",
    )
    rival = middle.selectbox(
        "Rival, decoding plainly",
        [ITSELF, *architecture_names()],
        help="The model that writes token by token, in the target's format. A diffusion model "
        "cannot do that itself; a network of its shape could.",
        key="rival",
        bind="query-params",
    )
    cached = right.checkbox(
        "Block cache",
        help="Keep keys and values of finished blocks, so that a pass has a block's rows alone.",
        key="block_cache",
        bind="query-params",
    )
    show(
        diffusion(
            selection,
            DiffusionSettings(block=block, cached=cached, rival="" if rival == ITSELF else rival),
        )
    )
else:
    st.info(f"{selection.target} writes token by token: it is no diffusion model.")
    st.button(f"Start from {DIFFUSION}", on_click=controls.start_from, args=(DIFFUSION,))
