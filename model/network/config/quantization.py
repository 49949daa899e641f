"""The quantization that a config.json states, as mlx-lm writes and reads it.

mlx-lm writes `{"group_size": 64, "bits": 4, "mode": "affine"}` under `quantization` and again under
`quantization_config`. Module paths beside those keys lead to an object of the same kind for a
matrix with its own format, or to false for one that is not quantized.
Releases that are not MLX's own name a `quant_method` instead. Of those, mxfp4 and mxfp8 are kept
packed by mlx-lm and can be counted from the config alone. The scale of 4 bytes that nvfp4 experts
may have besides (`global_scale`) is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from model.errors import InputError
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint, Overrides
from model.network.config.fields import Fields
from model.network.matrix import Matrix
from model.network.weight_format import WeightFormat, weight_format

FIXED_MODES = {"mxfp4": (32, 4), "nvfp4": (16, 4), "mxfp8": (32, 8)}
"""The one group size and width that each mode of small floats has."""


def stated_checkpoint(
    config: Mapping[str, object], architecture: Architecture
) -> Checkpoint | None:
    """The checkpoint that a config describes, or None where it states no quantization.

    Raises:
        InputError: a section that cannot be read, or a method that mlx-lm would unpack.
    """
    fields = Fields(values=config, where=architecture.source)
    if fields.has("quantization"):
        return _as_mlx_wrote_it(fields.child("quantization"), architecture)
    if not fields.has("quantization_config") and fields.has("text_config"):
        fields = fields.child("text_config")  # as mlx-lm does for vision models
    if not fields.has("quantization_config"):
        return None
    section = fields.child("quantization_config")
    if section.has("quant_method"):
        return _as_others_wrote_it(section, architecture)
    return _as_mlx_wrote_it(section, architecture)


def _as_mlx_wrote_it(section: Fields, architecture: Architecture) -> Checkpoint:
    group, bits = section.size("group_size"), section.size("bits")
    default = _format(section, group, bits)
    # Where the map names no router, it was quantized like the rest when the file was written.
    formats: dict[str, WeightFormat | None] = {
        path: default if default.fits(matrix.depth) else None
        for path, matrix in _matrices(architecture)
        if matrix.protected
    }
    # Paths that are not of the language model (a vision tower's) simply match no matrix.
    for path, own in section.values.items():
        if isinstance(own, bool):
            formats[path] = default if own else None
        elif isinstance(own, dict):
            formats[path] = _format(section.child(path))
    return Checkpoint(
        architecture=architecture, weight_format=default, overrides=Overrides(formats)
    )


def _as_others_wrote_it(section: Fields, architecture: Architecture) -> Checkpoint:
    method = section.text("quant_method")
    spared = [str(pattern) for pattern in section.items("modules_to_not_convert")]
    if method not in ("mxfp4", "mxfp8") or not spared:
        raise section.refusal(
            "quant_method",
            "does not say what MLX will hold in memory",
            "choose a format with --format",
        )
    formats: dict[str, WeightFormat | None] = {
        path: weight_format(method) for path, matrix in _matrices(architecture) if matrix.protected
    }
    for path, _ in _matrices(architecture):
        released = path.removeprefix(architecture.module_prefix)
        if any(
            fnmatchcase(released, each) or fnmatchcase(released, f"{each}.*") for each in spared
        ):
            formats[path] = None
    return Checkpoint(
        architecture=architecture,
        weight_format=weight_format(method),
        overrides=Overrides(formats),
    )


def _format(section: Fields, group: int = 64, bits: int = 4) -> WeightFormat:
    """The format of one entry; absent fields have MLX's defaults for the mode."""
    mode = section.text("mode", "affine")
    if mode in FIXED_MODES:
        only_group, only_bits = FIXED_MODES[mode]
        for key, only in (("group_size", only_group), ("bits", only_bits)):
            if section.size(key, only) != only:
                raise section.refusal(key, f"is not what {mode} has", f"give {only}")
        return weight_format(mode)
    if mode != "affine":
        right = f"use affine, {', '.join(FIXED_MODES)}"
        raise section.refusal("mode", "is not a mode of MLX", right)
    group, bits = section.size("group_size", group), section.size("bits", bits)
    try:
        return weight_format(f"{bits}bit-g{group}")
    except InputError as error:
        wrong, right = f"with groups of {group} is not a format of MLX", error.right
        raise section.refusal("bits", wrong, right) from error


def _matrices(architecture: Architecture) -> Iterator[tuple[str, Matrix]]:
    """Every matrix with its full MLX path."""
    for index, layer in enumerate(architecture.layers):
        for matrix in layer.matrices:
            yield architecture.layer_path(index, matrix), matrix
    tables = {architecture.embedding, architecture.head, *architecture.lookups}
    for matrix in (*tables, *architecture.entry_matrices):
        yield architecture.outer_path(matrix), matrix
