"""Networks and heads as mlx-vlm has them: of random weights from a config, or from a local folder.

Nothing is downloaded, and a folder that brings code of its own is refused: mlx-vlm would run it.
Of a config with a part for pictures random weights are drawn for the text alone.
"""

# MLX's own hints are open in places, and mlx-vlm has none.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from mlx_lm.tokenizer_utils import load as load_tokenizer

from calibrate.environment import read_environment
from calibrate.networks import (
    Network,
    activation_dtype,
    check_fits,
    finished,
    parameter_bytes,
    store_as,
    stored_name,
)
from calibrate.open_network import RANDOM_FORMAT, holds_weights
from calibrate.random_weights import draw_weights
from calibrate.vlm.library import PACKAGE, library_name, part
from model.errors import InputError
from model.network.target import load_config
from model.network.weight_format import weight_format

MODELS, DRAFTERS = "models", "speculative.drafters"
OTHER_SENSES = (
    *("vision_tower", "embed_vision", "vision_embedder"),
    *("audio_tower", "embed_audio"),
)


def open_network(spec: str, format_name: str | None, weights: str) -> Network:
    """A network as mlx-vlm has it; local weights where there are any, else random ones.

    Raises:
        InputError: no such target, none that mlx-vlm knows, or no weights although asked for.
    """
    if is_local(spec, weights):
        return local_network(spec, part("utils").load_model)
    return random_network(load_config(spec).config, format_name or RANDOM_FORMAT, name=spec)


def random_network(
    config: Mapping[str, object], format_name: str, *, name: str, kind: str = MODELS, seed: int = 0
) -> Network:
    """A network or head (`kind` says which) that mlx-vlm knows, with random weights.

    Raises:
        InputError: the architecture or the format is unknown, or it would not fit in memory;
            nothing has been allocated then.
    """
    form = weight_format(format_name)
    module = without_senses(new_module(config, kind, name))
    store_as(module, form)
    check_fits(f"{name} in {form.name}", parameter_bytes(module))
    draw_weights(module, seed)
    return finished(module, name, "random", form.name, with_vocabulary(config), None)


def local_network(spec: str, load: Callable[[Path], Any]) -> Network:
    """The network or head in a local folder, with its tokenizer if there is one.

    Raises:
        InputError: the folder lacks config.json or weights, brings code, or cannot be loaded.
    """
    path = Path(spec).expanduser()
    config = local_config(path)
    check_fits(str(path), sum(file.stat().st_size for file in path.glob("*.safetensors")))
    tokenizer = None
    try:
        module = load(path)
        if (path / "tokenizer_config.json").exists() or (path / "tokenizer.json").exists():
            tokenizer = load_tokenizer(path, {"trust_remote_code": False})
    except Exception as error:  # each class fails in a way of its own
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        right = f"give a folder that {library_name()} can load"
        raise InputError(str(path), f"cannot be loaded ({reason})", right) from error
    device = read_environment().device
    if config.get("quantization") and device == "cpu":
        module.set_dtype(activation_dtype(device))
    stored = stored_name(config)
    found = finished(module, path.name, "real", stored, with_vocabulary(config), tokenizer)
    return replace(found, name=spec)


def is_local(spec: str, weights: str) -> bool:
    """Whether a target's own weights are to be loaded.

    Raises:
        InputError: they are asked for and are not there.
    """
    here = holds_weights(Path(spec).expanduser())
    if weights == "real" and not here:
        right = "give a folder with safetensors; nothing is downloaded"
        raise InputError(spec, "has no weights on this machine", right)
    return here and weights != "random"


def local_config(path: Path) -> dict[str, Any]:
    """The config.json of a folder that holds no code.

    Raises:
        InputError: there is none, it is no object, or it names a file of code.
    """
    file = path / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        wrong = f"cannot be read ({getattr(error, 'strerror', None) or 'it is not JSON'})"
        raise InputError(str(file), wrong, "give a local folder with a model") from error
    if not isinstance(config, dict):
        raise InputError(str(file), "is not a JSON object", "give a model's own config.json")
    found = cast("dict[str, Any]", config)
    if found.get("model_file"):
        right = "give a folder whose model_type mlx-vlm knows"
        raise InputError(str(file), f"asks to run {found['model_file']!r}", right)
    return found


def without_senses(module: Any) -> Any:
    """The module without what only pictures and sounds go through; their weights are not drawn."""
    for name in OTHER_SENSES:
        if getattr(module, name, None) is not None:
            setattr(module, name, None)
    return module


def exists(kind: str, name: str) -> bool:
    """Whether the library has a network of this name."""
    return name.isidentifier() and bool(importlib.util.find_spec(f"{PACKAGE}.{kind}.{name}"))


def new_module(config: Mapping[str, object], kind: str, name: str) -> Any:
    """mlx-vlm's module for a config; its parameters are promises, nothing is computed yet.

    Raises:
        InputError: the library does not know it, or its config lacks something.
    """
    right = f"give a config.json that {library_name()} knows"
    found = str(part("utils").get_model_type(dict(config)))
    if not exists(kind, found):
        wrong = f"is not among mlx-vlm's {'draft heads' if kind == DRAFTERS else 'networks'}"
        raise InputError(f"{name}: model_type {found!r}", wrong, right)
    family = part(f"{kind}.{found}")
    try:
        return family.Model(_arguments(family, dict(config)))
    except Exception as error:  # each class fails in a way of its own
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        wrong = f"cannot be built from its config ({reason})"
        raise InputError(f"{name}: model_type {found!r}", wrong, right) from error


def _arguments(family: Any, config: dict[str, Any]) -> Any:
    """A family's own record of a config, its parts made records too, as the library loads them."""
    if not hasattr(family, "VisionModel"):
        return family.ModelConfig.from_dict(config)
    whole = {"text_config": {}, "vision_config": {}, **config}
    arguments = family.ModelConfig.from_dict(whole)
    return part("utils").update_module_configs(arguments, family, whole, ["text", "vision"])


def with_vocabulary(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config with `vocab_size` where `finished` looks for it; heads keep it further inside."""
    inner = (config, config.get("text_config"), config.get("transformer_layer_config"))
    sizes = [each["vocab_size"] for each in inner if each and "vocab_size" in each]
    return {**config, "vocab_size": sizes[0] if sizes else 0}
