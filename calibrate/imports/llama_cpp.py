"""What llama.cpp's benchmarks have in common: backends, chips in their logs, names of files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from calibrate.imports.cells import chip_name, gguf_name
from calibrate.imports.shell import Command

CALLS = re.compile(r"\bllama-(?:batched-)?bench\b")
BACKENDS = {"MTL": "Metal"}
HELPERS = ("BLAS", "CPU")
"""Backends that are listed wherever they were built, and decode nothing beside a GPU."""

GPU_LINES = (
    re.compile(r"ggml_metal\w*: GPU name: +(?:MTL\d+ )?\(?([^()\n]+?)\)?[ \t]*$", re.MULTILINE),
    re.compile(r"^ +Device \d+: ([^,\n]+), compute capability", re.MULTILINE),
)
"""Metal's and CUDA's first lines on stderr, as far as they name the GPU."""


def runtime(backends: str, gpu_layers: str) -> str:
    """The runtime and the back end that decoded; with no layer on the GPU, the CPU did.

    >>> runtime("MTL,BLAS", "-1"), runtime("CUDA", "0"), runtime("BLAS", "")
    ('llama.cpp (Metal)', 'llama.cpp (CPU)', 'llama.cpp (CPU)')
    """
    listed = [name.strip() for name in backends.split(",") if name.strip()]
    names = [BACKENDS.get(name, name) for name in listed if name not in HELPERS]
    if not listed:
        return "llama.cpp" if gpu_layers != "0" else "llama.cpp (CPU)"
    if not names or gpu_layers == "0":
        return "llama.cpp (CPU)"
    return f"llama.cpp ({', '.join(names)})"


def logged_chip(text: str) -> str:
    """The one GPU that a log names, or nothing: of several it does not say which decoded."""
    names = {chip_name(name) for pattern in GPU_LINES for name in pattern.findall(text)}
    return names.pop() if len(names) == 1 else ""


def model_cells(call: Command) -> Mapping[str, str]:
    """Target and quantization as a command line names them, where it names one model."""
    file, repository = call.flag("-m", "--model"), call.flag("-hf", "-hfr", "--hf-repo")
    if "," in file or "," in repository:
        return {"target_model": "", "quant": ""}
    if file:
        target, quant = gguf_name(file)
    else:
        name, _, quant = repository.rpartition("/")[2].partition(":")
        target = re.sub(r"-GGUF$", "", name, flags=re.IGNORECASE)
    return {"target_model": target, "quant": quant}
