"""Networks that can really run: of random weights from a config alone, or loaded from a folder.

A pass costs the same whatever the weights are, so random ones time an architecture that was
never downloaded. What they cannot tell is acceptance, nor which experts trained rows have in
common: random ones choose by chance or alike (:mod:`calibrate.random_weights`), and masks alike.
Nothing here reaches the internet, and no code that comes with a model is run.
"""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import mlx.core as mx
import mlx.nn as nn
import mlx_lm
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes  # pyright: ignore[reportPrivateUsage]: local only

from calibrate.environment import free_bytes, read_environment
from calibrate.mlx_device import activation_of, packing
from calibrate.random_weights import draw_weights
from model.errors import InputError
from model.network.weight_format import DEFAULT_GROUP, WeightFormat, weight_format
from model.units import GB


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network whose weights are in memory, ready to decode.

    Attributes:
        model: mlx-lm's module; `model(tokens, cache=...)` gives logits.
        weights: "random" or "real".
        format_name: How its matrices are stored, a name that `model.network.weight_format` knows.
        vocab_size: Token numbers are below this.
        total_bytes: All parameters, the scales of quantized ones included.
        tokenizer: What turns text into tokens; None where the weights are random.
    """

    model: Any
    name: str
    weights: str
    format_name: str
    vocab_size: int
    total_bytes: int
    tokenizer: Any | None


def activation_dtype(environment_device: str) -> mx.Dtype:
    """The type that activations have when the matrices are quantized.

    bfloat16, but float32 on MLX's CPU back end: its quantized kernels are 8 times slower with
    bfloat16 activations and 36 times slower with float16 (measured with MLX 0.32.4).
    """
    return mx.float32 if environment_device == "cpu" else mx.bfloat16


def random_network(
    config: Mapping[str, object], format_name: str, seed: int = 0, *, name: str = ""
) -> Network:
    """A network of any architecture that mlx-lm knows, with random weights.

    Args:
        config: A Hugging Face config.json.
        format_name: A name that :mod:`model.network.weight_format` knows. On the CPU back end
            affine scales take 32 bits in any case, as `activation_dtype` says.
        seed: Equal seeds draw equal weights.
        name: What to call it; the config's model_type by default.

    Raises:
        InputError: The architecture or the format is unknown, or it would not fit in memory;
            nothing has been allocated then.
    """
    form = weight_format(format_name)
    module = new_module(config)
    store_as(module, form)
    name = name or str(config["model_type"])
    check_fits(f"{name} in {form.name}", parameter_bytes(module))
    draw_weights(module, seed)
    return finished(module, name, "random", form.name, config, None)


def load_network(folder: str | Path) -> Network:
    """The network and tokenizer in a local folder, as mlx-lm loads them.

    Raises:
        InputError: The folder lacks config.json or weights, its architecture is unknown, it asks
            to run code of its own, or the weights do not fit in memory.
    """
    path = Path(folder).expanduser()
    config = _read_config(path)
    weight_bytes = sum(file.stat().st_size for file in path.glob("model*.safetensors"))
    if not weight_bytes:
        raise InputError(str(path), "has no model*.safetensors", "give a folder with the weights")
    check_fits(str(path), weight_bytes)
    no_code: dict[str, Any] = {"trust_remote_code": False}
    try:
        module, tokenizer = mlx_lm.load(str(path), tokenizer_config=no_code)[:2]
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RuntimeError) as error:
        wrong = f"cannot be loaded ({_first_line(error)})"
        raise InputError(str(path), wrong, "give a folder that mlx-lm can load") from error
    device = read_environment().device
    if config.get("quantization") and device == "cpu":
        module.set_dtype(activation_dtype(device))  # usable only so: see activation_dtype
    return finished(module, path.resolve().name, "real", stored_name(config), config, tokenizer)


def new_module(config: Mapping[str, object]) -> Any:
    """mlx-lm's module for a config; its parameters are promises, nothing is computed yet."""
    kind = f"model_type {config.get('model_type')!r}"
    try:
        module_class, arguments_class = _get_classes(dict(config))
        return module_class(arguments_class.from_dict(dict(config)))
    except (Exception, SystemExit) as error:  # each class fails in a way of its own; one exits
        wrong = f"cannot be built from this config ({_first_line(error)})"
        raise InputError(kind, wrong, "give a config.json that mlx-lm knows") from error


def store_as(module: Any, form: WeightFormat) -> None:
    """Give all matrices a format, as mlx-lm's conversion would; nothing is computed yet.

    Scales take the type of the weights they come from, so these are cast first. Matrices that
    the groups do not divide stay floats; an exception that mlx-lm itself makes for an
    architecture (a router in 8 bits) is made here too.
    """
    module.set_dtype(activation_of(form))
    if form.family == "float":
        return
    exception = getattr(module, "quant_predicate", None)

    def chosen(path: str, part: Any) -> bool | dict[str, Any]:
        if not hasattr(part, "to_quantized") or not form.fits(part.weight.shape[-1]):
            return False
        return exception(path, part) if exception else True

    nn.quantize(module, **packing(form), class_predicate=chosen)


def parameter_bytes(module: Any) -> int:
    """Bytes of all parameters, known before any of them is computed."""
    arrays: Any = tree_flatten(module.parameters())
    return sum(array.nbytes for _, array in arrays)


def check_fits(what: str, needed_bytes: int) -> None:
    """Refuse weights that do not fit beside what MLX holds already."""
    left_bytes = free_bytes()
    if needed_bytes > left_bytes:
        wrong = f"needs {needed_bytes / GB:.2f} GB and {left_bytes / GB:.2f} GB are free"
        raise InputError(what, wrong, "choose fewer bits or a smaller model")


def finished(
    module: Any,
    name: str,
    weights: str,
    format_name: str,
    config: Mapping[str, object],
    tokenizer: Any | None,
) -> Network:
    """The record of a module, once all its parameters are computed."""
    module.eval()
    mx.eval(module.parameters())
    mx.clear_cache()
    text: Any = config if "vocab_size" in config else config["text_config"]
    return Network(
        model=module,
        name=name,
        weights=weights,
        format_name=format_name,
        vocab_size=int(text["vocab_size"]),
        total_bytes=parameter_bytes(module),
        tokenizer=tokenizer,
    )


def _read_config(path: Path) -> dict[str, Any]:
    file = path / "config.json"
    config: Any
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        wrong = f"cannot be read ({_first_line(error)})"
        raise InputError(str(file), wrong, "give a local folder with a model") from error
    if not isinstance(config, dict):
        raise InputError(str(file), "is not a JSON object", "give a model's own config.json")
    return config


def stored_name(config: Mapping[str, Any]) -> str:
    """The name of the format that a config declares."""
    stored = config.get("quantization")
    if not stored:
        declared = str(config.get("dtype") or config.get("torch_dtype"))
        return {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(declared, declared)
    if stored.get("mode", "affine") != "affine":
        return str(stored["mode"])
    group = stored["group_size"]
    return f"{stored['bits']}bit" + f"-g{group}" * (group != DEFAULT_GROUP)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
