"""Trained heads and their targets as mlx-vlm has them, and which of them fit together.

A head drafts from what its target's layers left, so the target has to be mlx-vlm's too. MTP heads,
Gemma 4's assistants, EAGLE-3 and block drafters all go the same way.

What mlx-vlm 0.7.10 lacks: a target whose layers it cannot read from (Llama, Qwen 3 and all others
without `rollback_speculative_cache`) runs neither EAGLE-3 nor DFlash, and an MTP head only where
its family hands out hidden states; EAGLE-3 is known in the form of vllm-project/speculators alone;
ReDrafter and trees of drafts are not there at all.
"""

# mlx-vlm has no hints, and MLX's own are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

import mlx.core as mx

from calibrate.networks import Network
from calibrate.vlm.library import library_name, part
from calibrate.vlm.networks import (
    DRAFTERS,
    MODELS,
    is_local,
    local_network,
    new_module,
    random_network,
)
from model.errors import InputError
from model.network.config.token_heads import EAGLE_TAPS
from model.network.head_target import head_config
from model.network.target import load_config

HEAD_FORMAT = "bf16"
READS_LAYERS = ("eagle3", "dflash")
TAPS = "eagle_aux_hidden_state_layer_ids"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A head in memory, and the kind of rounds that it needs: "mtp", "eagle3" or "dflash"."""

    network: Network
    kind: str


def open_head(spec: str, format_name: str | None, weights: str, target_spec: str) -> Head:
    """A head of a target; local weights where there are any, else random ones.

    Raises:
        InputError: no such head, none that mlx-vlm knows, or no weights although asked for.
    """
    drafters = part(DRAFTERS)
    if is_local(spec, weights):
        network = local_network(spec, lambda path: drafters.load_drafter(str(path))[0])
    else:
        config = whole_config(spec, target_spec)
        network = random_network(config, format_name or HEAD_FORMAT, name=spec, kind=DRAFTERS)
    kind = drafters.resolve_drafter_kind(spec, config=network.model.config)
    return Head(network=network, kind=kind)


def whole_config(spec: str, target_spec: str) -> dict[str, object]:
    """The config of a head, with the target's where it says nothing of its layers.

    Raises:
        InputError: there is no such head or target.
    """
    config = dict(head_config(spec))
    inside, target = config.get("text_config"), load_config(target_spec).config
    if isinstance(inside, dict):
        text = target.get("text_config")
        outer = cast("dict[str, object]", text if isinstance(text, dict) else target)
        config["text_config"] = {**outer, **cast("dict[str, object]", inside)}
    return config


def check_target(spec: str, head: Head) -> None:
    """Refuse a target of which mlx-vlm reads no layers, before anything of it is drawn or loaded.

    Raises:
        InputError: the head needs them and there is no way to them.
    """
    if head.kind not in READS_LAYERS:
        return
    module = new_module(load_config(spec).config, MODELS, spec)
    language_model = getattr(module, "language_model", module)
    if not hasattr(language_model, "rollback_speculative_cache"):
        wrong = f"cannot run {head.kind} heads in mlx-vlm, which reads no layers of it"
        raise InputError(spec, wrong, _right(head))


def check_pair(target: Network, head: Head) -> None:
    """Refuse a target that hands out nothing for the head to read, or other than it reads.

    Raises:
        InputError: it is such a one.
    """
    language_model = getattr(target.model, "language_model", target.model)
    asked = part("speculative.utils").speculative_prefill_kwargs(head.kind, head.network.model)
    try:
        part(DRAFTERS).validate_drafter_compatibility(target.model, head.network.model, head.kind)
        caches = language_model.make_cache()
        seen = language_model(mx.array([[0]], mx.uint32), cache=caches, **asked).hidden_states
    except Exception as error:  # each family fails in a way of its own
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        wrong = f"does not fit {target.name} ({reason})"
        raise InputError(f"head {head.network.name}", wrong, _right(head)) from error
    if not seen:
        wrong = f"cannot run {head.kind} heads in mlx-vlm, which hands out no states of it"
        raise InputError(target.name, wrong, _right(head))
    if head.kind == "eagle3" and len(seen) != EAGLE_TAPS:
        wrong = f"reads {EAGLE_TAPS} layers, and its config names {len(seen)}"
        right = f"add {TAPS} to its config, three layers of the target"
        raise InputError(f"head {head.network.name}", wrong, right)


def _right(head: Head) -> str:
    return f"give a target that {library_name()} runs with {head.kind} heads, e.g. qwen3.5-4b"
