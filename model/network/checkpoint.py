"""An architecture in a weight format: bytes in memory, and bytes that one token reads.

Numbers are those of mlx-lm's own model after `mlx_lm.convert` (0.32.2), to the byte: matrices in
the weight format, vectors and biases in the activation dtype, a matrix whose depth does not
divide into groups left unquantized, the routers of some mixtures kept in 8 bits. What a token
reads is all of it but the experts it does not select and the tables of which it gathers one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

from model.errors import InputError
from model.network.architecture import Architecture
from model.network.layer import Layer
from model.network.matrix import Matrix, Siblings
from model.network.weight_format import WeightFormat, weight_format

if TYPE_CHECKING:
    from model.units import Quantity

Formats: TypeAlias = Mapping[str, WeightFormat]
"""The format of each matrix of a layer, by the matrix's name."""


@final
class Overrides(Mapping[str, WeightFormat | None]):
    """Formats of single matrices by full MLX path; None stands for not quantized. Hashable."""

    __slots__ = ("_formats",)

    def __init__(self, formats: Mapping[str, WeightFormat | None] | None = None) -> None:
        self._formats = dict(formats or {})

    def __getitem__(self, path: str) -> WeightFormat | None:
        return self._formats[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._formats)

    def __len__(self) -> int:
        return len(self._formats)

    def __hash__(self) -> int:
        return hash(frozenset(self._formats.items()))

    def __repr__(self) -> str:
        return f"Overrides({self._formats!r})"


NO_OVERRIDES = Overrides()


class LayerKind(NamedTuple):
    """A layer, how many layers are like it in shape and formats, and those formats."""

    layer: Layer
    repeats: int
    formats: Formats


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A network as it lies in memory.

    `vector_bytes` is the width of the activation dtype: norms, biases and whatever is not
    quantized have it, and so has the cache unless `cache_format` quantizes it.
    """

    architecture: Architecture
    weight_format: WeightFormat
    overrides: Overrides = NO_OVERRIDES
    vector_bytes: int = 2
    cache_format: WeightFormat | None = None

    def __hash__(self) -> int:
        """A cheap hash, so that caches may be keyed by a checkpoint."""
        return hash((self.architecture.name, self.weight_format.name, self.vector_bytes))

    def in_float32(self) -> Checkpoint:
        """The same network with every 16-bit number as 32 bits.

        This is what MLX's CPU back end computes well: fp32 activations, and weights cast to fp32
        before they are quantized, which widens their scales and biases too.
        """
        return replace(
            self,
            weight_format=_widened(self.weight_format),
            overrides=Overrides(
                {path: own and _widened(own) for path, own in self.overrides.items()}
            ),
            vector_bytes=4,
        )

    def check_context(self, context: float) -> None:
        """Refuse a context that the network cannot hold; a config that states no limit has none.

        Raises:
            InputError: the context is beyond the limit.
        """
        limit = self.architecture.context_limit
        if limit is not None and context > limit:
            wrong = f"is beyond the {limit} tokens of {self.architecture.name}"
            raise InputError(f"context {context:.0f}", wrong, "give fewer tokens")

    def matrix_format(self, path: str, matrix: Matrix) -> WeightFormat:
        """The format of the matrix at a full MLX path, by mlx-lm's rules.

        An override wins. Else what MLX never quantizes stays as it is, as does a row that does
        not split into groups; a protected matrix gets 8 bits in groups of 64, and the rest the
        checkpoint's format.
        """
        unquantized = weight_format("fp32" if self.vector_bytes == 4 else "bf16")
        if path in self.overrides:
            return self.overrides[path] or unquantized
        if not matrix.quantizes or not self.weight_format.fits(matrix.depth):
            return unquantized
        if matrix.protected and self.weight_format.family != "float":
            return weight_format("8bit").with_scale_bits(32 if self.vector_bytes == 4 else 16)
        return self.weight_format

    def matrix_bytes(self, matrix: Matrix, stored_as: WeightFormat) -> int:
        """Bytes of all copies of a matrix in a format, its biases included."""
        packed = matrix.count * stored_as.matrix_bytes(matrix.columns, matrix.depth)
        return packed + matrix.biases * self.vector_bytes

    def layer_formats(self, index: int) -> Formats:
        """The format of each matrix of layer `index`, by its name in the layer."""
        path = self.architecture.layer_path
        return MappingProxyType(
            {
                matrix.name: self.matrix_format(path(index, matrix), matrix)
                for matrix in self.architecture.layers[index].matrices
            }
        )

    def siblings_bytes(self, siblings: Siblings, formats: Formats) -> int:
        """Bytes of matrices that are read together, all copies."""
        return sum(self.matrix_bytes(each, formats[each.name]) for each in siblings.matrices)

    def expert_bytes(self, kind: LayerKind) -> int:
        """Bytes of one routed expert of a layer; 0 where there is none."""
        experts = kind.layer.experts
        if experts is None:
            return 0
        stored = sum(self.siblings_bytes(each, kind.formats) for each in experts.siblings)
        return stored // experts.num_experts

    @property
    def label(self) -> str:
        """The network and the format of most of its weights, as a person names them."""
        return f"{self.architecture.name} {self.weight_format.name}"

    @property
    def layer_kinds(self) -> tuple[LayerKind, ...]:
        """The distinct layers in shape and formats, so that equal ones are priced once."""
        return _layer_kinds(self)

    @property
    def head_siblings(self) -> Siblings:
        """The matrix of the logits, as the group of one that it is."""
        return Siblings(name="head", matrices=(self.architecture.head,))

    @property
    def head_formats(self) -> Formats:
        """The format of the head, by its name."""
        head = self.architecture.head
        return {head.name: self._outer_format(head)}

    @property
    def head_bytes(self) -> int:
        """Bytes of the head; those of the input table when it is tied."""
        return self.siblings_bytes(self.head_siblings, self.head_formats)

    @property
    def embedding_bytes(self) -> int:
        """Bytes of the input table."""
        embedding = self.architecture.embedding
        return self.matrix_bytes(embedding, self._outer_format(embedding))

    @property
    def entry_formats(self) -> Formats:
        """The formats of the matrices before the first layer, by name."""
        return {each.name: self._outer_format(each) for each in self.architecture.entry_matrices}

    @property
    def entry_bytes(self) -> int:
        """Bytes of the matrices before the first layer."""
        entry = self.architecture.entry_matrices
        return sum(self.matrix_bytes(each, self.entry_formats[each.name]) for each in entry)

    @property
    def total_bytes(self) -> int:
        """Bytes of every weight in memory; a borrowed table is counted with its owner."""
        tables = self.architecture.owned_tables
        stored = sum(self.matrix_bytes(each, self._outer_format(each)) for each in tables)
        layers = sum(kind.repeats * self._layer_bytes(kind) for kind in self.layer_kinds)
        return stored + self.entry_bytes + layers + self._final_vector_bytes

    @property
    def weight_bytes_per_token(self) -> int:
        """Bytes of weights that a pass of one row reads."""
        layers = sum(kind.repeats * self._read_bytes(kind) for kind in self.layer_kinds)
        outside = self.entry_bytes + self.head_bytes + self._final_vector_bytes
        return outside + self.architecture.loops * layers

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes that attention needs of a token while every window has room."""
        return self.architecture.kv_bytes_per_token(self.cache_element_bytes)

    @property
    def kept_kv_bytes_per_token(self) -> float:
        """Bytes that mlx-lm keeps of a token while every window has room."""
        element_bytes = self.cache_element_bytes
        states = self.architecture.state_bytes(element_bytes)
        return float(self.architecture.kv_bytes(1, element_bytes)) - states

    @property
    def cache_element_bytes(self) -> float:
        """Bytes of one number in the cache, its share of scale and bias included."""
        if self.cache_format is None:
            return self.vector_bytes
        return self.cache_format.bits_per_weight / 8.0

    def kv_cache_bytes(self, context: Quantity) -> Quantity:
        """Bytes of the caches and states of one sequence at a context."""
        states = self.architecture.state_bytes
        # States stay as wide as activations whatever the cache is quantized to.
        widened = states(self.vector_bytes) - states(self.cache_element_bytes)
        return self.architecture.kv_bytes(context, self.cache_element_bytes) + widened

    def _outer_format(self, matrix: Matrix) -> WeightFormat:
        return self.matrix_format(self.architecture.outer_path(matrix), matrix)

    @property
    def _final_vector_bytes(self) -> int:
        return self.architecture.final_vector_params * self.vector_bytes

    def _layer_bytes(self, kind: LayerKind) -> int:
        matrices = (
            self.matrix_bytes(each, kind.formats[each.name]) for each in kind.layer.matrices
        )
        outside = kind.layer.vector_params + kind.layer.table_params
        return outside * self.vector_bytes + sum(matrices)

    def _read_bytes(self, kind: LayerKind) -> int:
        experts = kind.layer.experts
        unread = 0 if experts is None else experts.num_experts - experts.top_k
        tables = kind.layer.table_params * self.vector_bytes
        return self._layer_bytes(kind) - tables - unread * self.expert_bytes(kind)


def _widened(stored_as: WeightFormat) -> WeightFormat:
    return weight_format("fp32") if stored_as.family == "float" else stored_as.with_scale_bits(32)


@lru_cache(maxsize=256)
def _layer_kinds(checkpoint: Checkpoint) -> tuple[LayerKind, ...]:
    kinds: dict[tuple[Layer, tuple[WeightFormat, ...]], LayerKind] = {}
    for index, layer in enumerate(checkpoint.architecture.layers):
        formats = checkpoint.layer_formats(index)
        alike = layer, tuple(formats.values())
        repeats = kinds[alike].repeats if alike in kinds else 0
        kinds[alike] = LayerKind(layer, repeats + 1, formats)
    return tuple(kinds.values())
