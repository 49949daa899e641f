"""Diffusion: which answers are faster denoised?"""

from dataclasses import replace

import streamlit as st

from dashboard import controls
from dashboard.figure import literally
from dashboard.figures.diffusion import DiffusionSettings, denoisers, denoises, diffusion
from dashboard.show import show
from model.articles.diffusion import MODEL
from model.catalog import architecture_names

ITSELF = "its own shape"
BLOCKS = (8, 16, 32, 64, 128, 256)

selection = controls.selection().without_acceptances
left, middle, right = st.columns([2, 2, 1], vertical_alignment="bottom")
block = left.select_slider(
    "Block (tokens)",
    BLOCKS,
    32,
    help="Tokens that are denoised together.",
    key="block",
    bind="query-params",
)
if denoises(selection):
    chosen = middle.selectbox(
        "Rival, decoding plainly",
        [ITSELF, *architecture_names()],
        help="The model that writes token by token, in the target's format. A diffusion model "
        "cannot do that itself; a network of its shape could.",
        key="rival",
        bind="query-params",
    )
    rival = "" if chosen == ITSELF else chosen
else:
    # The target writes token by token, so it is the rival of a model that does not.
    rival = selection.target
    model = middle.selectbox(
        f"Diffusion model, against {literally(rival)}",
        denoisers(),
        denoisers().index(MODEL),
        help="The target writes token by token. A diffusion model in its format would denoise "
        "whole blocks instead; whether its answers are as good is another question.",
        key="denoiser",
        bind="query-params",
    )
    selection = replace(selection, target=model)
cached = right.checkbox(
    "Block cache",
    help="Keep keys and values of finished blocks, so that a pass has a block's rows alone.",
    key="block_cache",
    bind="query-params",
)
show(diffusion(selection, DiffusionSettings(block=block, cached=cached, rival=rival)))
