"""What a person names on the command line, as a checkpoint.

A target is a name from `tokroof models`, a folder with a config.json, a config.json, or
`hf:owner/name`, of which only the config is fetched, and only because it was asked for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, cast, final

from model import catalog
from model.errors import InputError, unknown_name
from model.network.checkpoint import Checkpoint
from model.network.config import read_config
from model.network.config.quantization import stated_checkpoint
from model.network.weight_format import weight_format

LARGEST_CONFIG_BYTES = 8_000_000
"""The largest configs, with a quantization entry for every matrix, have some hundred kB."""

FETCH_TIMEOUT_S = 10.0

LOCAL_INSTEAD = "give a local folder with its config.json instead"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDocument:
    """A config.json, what to call its model, and where it came from."""

    name: str
    source: str
    config: dict[str, object]


def load_target(spec: str, format_name: str | None = None) -> Checkpoint:
    """The checkpoint that `spec` names.

    Its format is the one asked for, else the one its config states, else bf16.

    Raises:
        InputError: there is no such target, its config cannot be read, or no such format.

    >>> load_target("llama-3.1-8b", "4bit").total_bytes
    4517404672
    """
    if spec.lower() in catalog.architecture_names():
        return _shipped(spec.lower(), format_name)
    return _described(load_config(spec), format_name)


@lru_cache(maxsize=512)
def _shipped(name: str, format_name: str | None) -> Checkpoint:
    """A shipped network; one object for each, so that what is kept of it is found at once."""
    return _described(load_config(name), format_name)


def _described(document: ConfigDocument, format_name: str | None) -> Checkpoint:
    wanted = None if format_name is None else weight_format(format_name)
    architecture = read_config(document.config, name=document.name, source=document.source)
    if wanted is None:
        stated = stated_checkpoint(document.config, architecture)
        if stated is not None:
            return stated
        wanted = weight_format("bf16")
    checkpoint = Checkpoint(architecture=architecture, weight_format=wanted)
    # In fp32 the activations are 32 bits wide too, and so are the scales.
    return checkpoint.in_float32() if 32 in (wanted.scale_bits, wanted.bits) else checkpoint


def load_config(spec: str) -> ConfigDocument:
    """The config.json that `spec` names.

    Raises:
        InputError: there is none, or it cannot be read.
    """
    if spec.startswith("hf:"):
        return _fetched(spec)
    if spec.lower() in catalog.architecture_names():
        config = catalog.architecture_config(spec)
        return ConfigDocument(name=spec.lower(), source=str(config["_source"]), config=config)
    return _local(spec)


def _local(spec: str) -> ConfigDocument:
    if not spec:  # which as a path would be this very folder
        raise unknown_name("model", spec, catalog.architecture_names())
    path = Path(spec)
    if path.suffix.lower() in (".gguf", ".safetensors"):
        right = "give the model's config.json, and its format with --format (q4_0, 4bit, ...)"
        raise InputError(spec, "is a file of weights, which tokroof does not read", right)
    try:
        if path.is_dir():
            path = path / "config.json"
            if not path.exists():
                right = "give a folder of a model, or a config.json"
                raise InputError(spec, "is a folder without a config.json", right)
        elif not path.exists():
            raise _nothing_there(spec)
        with path.open("rb") as file:
            config = _parsed(file, spec)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise InputError(
            spec, f"cannot be read ({reason})", "give a readable config.json"
        ) from error
    stem = path.resolve().parent.name if path.name == "config.json" else path.stem
    return ConfigDocument(name=stem, source=str(path), config=config)


def _nothing_there(spec: str) -> InputError:
    if "/" not in spec and not spec.endswith(".json"):
        return unknown_name("model", spec, catalog.architecture_names())
    repository = re.fullmatch(r"[\w-]+/[\w.-]+", spec)
    right = f"for Hugging Face, give hf:{spec}" if repository else "give a folder or a config.json"
    return InputError(spec, "is not a file or folder", right)


def _fetched(spec: str) -> ConfigDocument:
    repository = spec.removeprefix("hf:")
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", repository, re.ASCII):
        raise InputError(spec, "is not hf:owner/name", "give e.g. hf:Qwen/Qwen3-4B")
    # An import that costs a tenth of a second, for a case that waits on the network anyway.
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import urlopen

    address = f"https://huggingface.co/{repository}/resolve/main/config.json"
    try:
        with urlopen(address, timeout=FETCH_TIMEOUT_S) as answer:
            config = _parsed(answer, spec)
    except HTTPError as error:
        wrong = {
            401: "does not exist, or needs a login",
            403: "needs a login",
            404: "has no config.json",
        }.get(error.code, f"was refused by huggingface.co (status {error.code})")
        raise InputError(spec, wrong, f"check the name, or {LOCAL_INSTEAD}") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        wrong = f"could not be fetched from huggingface.co ({reason})"
        raise InputError(spec, wrong, f"check the connection, or {LOCAL_INSTEAD}") from error
    name = repository.partition("/")[2]
    return ConfigDocument(name=name, source=f"huggingface.co/{repository}", config=config)


def _parsed(file: IO[bytes], spec: str) -> dict[str, object]:
    """The JSON object in an open file.

    Raises:
        InputError: it is too large, not UTF-8, not JSON, or not an object.
    """
    content = file.read(LARGEST_CONFIG_BYTES + 1)
    right = "give a Hugging Face config.json"
    if len(content) > LARGEST_CONFIG_BYTES:
        raise InputError(spec, f"is larger than {LARGEST_CONFIG_BYTES / 1e6:.0f} MB", right)
    try:
        value: object = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(spec, f"is not UTF-8 text (byte {error.start})", right) from error
    except json.JSONDecodeError as error:
        wrong = f"is not JSON (line {error.lineno}, column {error.colno}: {error.msg.lower()})"
        raise InputError(spec, wrong, right) from error
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of 5000 digits
        raise InputError(spec, "is not JSON that can be read", right) from error
    if not isinstance(value, dict):
        raise InputError(spec, "is JSON, but not an object in braces", right)
    return cast("dict[str, object]", value)
