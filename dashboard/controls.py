"""The sidebar: widgets in, one frozen Selection out; nothing else reads the session's state.

Every setting is bound to the address, so that a link shows what its sender saw.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import uploads
from dashboard.choice import alike, choose_one
from dashboard.drafts import likely_drafts
from dashboard.presets import (
    BY_POSITION,
    DEFAULT,
    MEMORIES,
    NO_DRAFT,
    ONE,
    OTHERS,
    OWN,
    PUBLISHED,
    RATES,
    TASKS,
    WHOLE_CACHE,
    key_of,
)
from dashboard.selection import Selection
from dashboard.start import start
from model.catalog import architecture_names
from model.commands.network_options import CACHE_FORMATS
from model.machine.kernels.releases import known_releases, runtime_name
from model.machine.profile_store import DEFAULT_MACHINE, machine_names, own_profiles
from model.network.weight_format import FORMAT_NAMES

CONTEXTS = (0, *(2**power for power in range(7, 18)))
RELEASES = known_releases()[::-1]
SERIES = dict.fromkeys(f"mlx-{major}.{minor}" for major, minor, _ in RELEASES)
"""Releases of MLX, the newest first; a series stands for its last release."""
OTHER_MODEL = "A name from the list, a folder with a config.json, or hf:owner/name."
OF_TARGET = f"The model whose answer you want. {OTHER_MODEL}"
OF_DRAFT = (
    "The small model that guesses for the target. Those that speak the target's tokens and are "
    f"at most half as large come first. {OTHER_MODEL}"
)


def show() -> None:
    """Draw the controls in the sidebar, and keep what they say for the views."""
    with st.sidebar:
        start()
        machine = _machine()
        target, target_format = _model(
            "Target", DEFAULT.target, DEFAULT.target_format, architecture_names(), OF_TARGET
        )
        drafts = [NO_DRAFT, *dict.fromkeys([*likely_drafts(target), *architecture_names()])]
        draft, draft_format = _model("Draft", DEFAULT.draft, DEFAULT.draft_format, drafts, OF_DRAFT)
        draft, draft_format = ("", "") if draft == NO_DRAFT else (draft, draft_format)
        acceptance, task = _acceptance() if draft else ("", "")
        context = st.select_slider(
            "Context (tokens)",
            CONTEXTS,
            DEFAULT.context,
            help="Tokens in the cache: the prompt and what was generated so far.",
            key="context",
            bind="query-params",
        )
        with st.expander("More"):
            runtime, memory, kv_format, batch = _more()
            others = _others()
            uploads.profile_uploader()
        remote = any(spec.startswith("hf:") for spec in (target, draft))
        fetch = remote and st.checkbox("Fetch config.json from huggingface.co")
    st.session_state["selection"] = Selection(
        machine=machine,
        runtime=runtime,
        memory=memory,
        target=target,
        target_format=target_format,
        draft=draft,
        draft_format=draft_format,
        kv_format=kv_format,
        context=context,
        batch=batch,
        acceptance=acceptance,
        task=task,
        others=others,
        fetch=fetch,
    )


def selection() -> Selection:
    """What the controls say in this run."""
    return st.session_state["selection"]


def _machine() -> str | None:
    """The machine, or None for the one that is chosen when none is."""
    uploaded = uploads.profiles()
    names = [*uploaded, *machine_names()]
    default = next(iter(own_profiles()), DEFAULT_MACHINE)
    chosen = st.selectbox(
        "Machine",
        names,
        names.index(default),
        help="Your own calibrations come first; the others are fitted to published runs. "
        "`tokroof calibrate` measures yours.",
        key="machine",
        bind="query-params",
    )
    if chosen in uploaded:
        return str(uploaded[chosen])
    return None if chosen == default else chosen


def _model(
    title: str, spec: str, format_name: str, names: Sequence[str], about: str
) -> tuple[str, str]:
    """A model and its weight format."""
    key = title.lower()
    left, right = st.columns([5, 3])
    chosen = left.selectbox(
        title,
        names,
        names.index(spec),
        help=about,
        accept_new_options=True,
        key=key,
        bind="query-params",
    )
    stored_as = right.selectbox(
        "Format",
        FORMAT_NAMES,
        FORMAT_NAMES.index(format_name),
        key=f"{key}_format",
        bind="query-params",
    )
    return chosen, stored_as


def _acceptance() -> tuple[str, str]:
    """The acceptance of the draft as the command line takes it, and the task it is taken from."""
    how = choose_one(
        "Acceptance of the draft's guesses",
        alike(ONE, BY_POSITION, PUBLISHED),
        key="known",
        about="How often the target accepts a draft token, given that it accepted all before it in "
        "the round: one probability, several by position in the draft, or that of published runs. "
        "It depends on both models and on the text, not on the machine; `tokroof run speculative` "
        "measures it.",
    )
    if how == BY_POSITION:
        rates = st.text_input(
            "By position",
            RATES,
            help="First draft token, second, ...; the last number holds for all later ones.",
            key="rates",
            bind="query-params",
        )
        return rates.replace(" ", ""), ""
    if how == PUBLISHED:
        task = st.selectbox(
            "Task",
            TASKS,
            help="The median of published pairs on this task; their spread is told.",
            key="task",
            bind="query-params",
        )
        return "", task
    rate = st.slider(
        "Acceptance",
        min_value=0.0,
        max_value=1.0,
        value=float(DEFAULT.acceptance),
        step=0.01,
        help="0.60: of ten guesses that are looked at, six are right.",
        key="acceptance",
        bind="query-params",
    )
    return f"{rate:g}", ""


def _more() -> tuple[str, int, str, int]:
    """Runtime, memory, the cache's format, and sequences side by side."""
    runtime = st.selectbox(
        "Runtime",
        [OWN, *SERIES, *map(runtime_name, RELEASES)],
        help="The same machine under another MLX release, kernel by kernel.",
        key="runtime",
        bind="query-params",
    )
    memory = st.select_slider(
        "Memory (GB)",
        MEMORIES,
        format_func=lambda size: OWN if size == 0 else str(size),
        help="The memory of your Mac, where it is not the one of the profile.",
        key="memory",
        bind="query-params",
    )
    cache = st.selectbox(
        "Cache format",
        [WHOLE_CACHE, *CACHE_FORMATS],
        help="How the keys and values of earlier tokens are stored.",
        key="cache",
        bind="query-params",
    )
    batch = st.number_input(
        "Sequences side by side",
        min_value=1,
        max_value=64,
        help="Answers generated at the same time.",
        key="batch",
        bind="query-params",
    )
    return (
        "" if runtime == OWN else runtime,
        memory,
        cache if cache in CACHE_FORMATS else "",
        batch,
    )


def _others() -> tuple[tuple[str, str], ...]:
    """Acceptances of the strategies that draft without a draft model, where they are known."""
    known: list[tuple[str, str]] = []
    for name in OTHERS:
        rate = st.number_input(
            f"Acceptance of {name}",
            min_value=0.0,
            max_value=1.0,
            value=None,
            step=0.05,
            placeholder="unknown",
            help="How often the target accepts a token of this strategy's draft.",
            key=key_of(name),
            bind="query-params",
        )
        if rate is not None:
            known.append((name, f"{rate:g}"))
    return tuple(known)
