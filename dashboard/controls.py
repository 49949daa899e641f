"""The sidebar: widgets in, one frozen Selection out; nothing else reads the session's state.

Every setting is bound to the address, so that a link shows what its sender saw.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import uploads
from dashboard.presets import PRESETS
from dashboard.selection import Selection
from model.catalog import architecture_names
from model.commands.network_options import CACHE_FORMATS
from model.machine.kernels.releases import known_releases, runtime_name
from model.machine.profile_store import DEFAULT_MACHINE, machine_names, own_profiles
from model.network.weight_format import FORMAT_NAMES
from model.progress.vocabulary import Task

DEFAULT = Selection()
CONTEXTS = (0, *(2**power for power in range(7, 18)))
MEMORIES = (0, 8, 16, 18, 24, 32, 36, 48, 64, 96, 128, 192, 256, 512)
NO_DRAFT = "none"
OWN = "the profile's own"
ONE, BY_POSITION, PUBLISHED = "one number", "by position", "published"
OTHER_MODEL = "A name from the list, a folder with a config.json, or hf:owner/name"
OTHERS = ("draft-head", "block-drafter", "layer-skip", "prompt-lookup")


def show() -> None:
    """Draw the controls in the sidebar, and keep what they say for the views."""
    with st.sidebar:
        _presets()
        machine = _machine()
        target, target_format = _model("Target", "target", DEFAULT.target, DEFAULT.target_format)
        draft, draft_format = _model(
            "Draft", "draft", DEFAULT.draft, DEFAULT.draft_format, none=NO_DRAFT
        )
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


def _presets() -> None:
    """Settings to start from, and the way back to the first ones."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.selectbox(
        "Start from",
        list(PRESETS),
        index=None,
        placeholder="an experiment",
        key="preset",
        on_change=_start_from,
    )
    right.button(
        ":material/restart_alt:",
        on_click=_reset,
        help="Reset: back to the settings it opens with",
        key="reset",
    )


def _start_from() -> None:
    chosen = st.session_state["preset"]
    if chosen is not None:
        start_from(chosen)


def start_from(preset: str) -> None:
    """Put the controls where a preset has them; to be called before they are drawn."""
    _reset(keep=("preset",))
    st.session_state.update(PRESETS[preset])


def _reset(keep: Sequence[str] = ()) -> None:
    for key in list(st.session_state):
        if key not in keep:
            del st.session_state[key]


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
    title: str, key: str, spec: str, format_name: str, *, none: str | None = None
) -> tuple[str, str]:
    """A model and its weight format; a draft may be none."""
    names = [*([none] if none else []), *architecture_names()]
    left, right = st.columns([5, 3])
    chosen = left.selectbox(
        title,
        names,
        names.index(spec),
        help=OTHER_MODEL,
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
    return ("", "") if chosen == none else (chosen, stored_as)


def _acceptance() -> tuple[str, str]:
    """The acceptance of the draft as the command line takes it, and the task it is taken from."""
    how = st.segmented_control(
        "Acceptance of the draft's guesses",
        [ONE, BY_POSITION, PUBLISHED],
        default=ONE,
        required=True,
        help="The probability that a draft token is accepted, given that all before it in the "
        "round were.",
        key="known",
        bind="query-params",
    )
    if how == BY_POSITION:
        rates = st.text_input(
            "By position",
            "0.7,0.6,0.5",
            help="First draft token, second, ...; the last number holds for all later ones.",
            key="rates",
            bind="query-params",
        )
        return rates.replace(" ", ""), ""
    if how == PUBLISHED:
        task = st.selectbox(
            "Task",
            [each.value for each in Task],
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
        key="acceptance",
        bind="query-params",
    )
    return f"{rate:g}", ""


def _more() -> tuple[str, int, str, int]:
    """Runtime, memory, the cache's format, and sequences side by side."""
    runtime = st.selectbox(
        "Runtime",
        [OWN, *map(runtime_name, known_releases())],
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
        ["16 bits", *CACHE_FORMATS],
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
            key=f"acceptance_{name}".replace("-", "_"),
            bind="query-params",
        )
        if rate is not None:
            known.append((name, f"{rate:g}"))
    return tuple(known)
