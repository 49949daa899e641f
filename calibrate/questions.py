"""The probes: what is asked of a device, with guesses of the time and memory it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from calibrate.cold import Cold, cold
from calibrate.grid import Dimensions, Grid
from calibrate.pass_questions import PassAuthor
from calibrate.probe import Probe
from calibrate.samples import REFERENCE, Settings, settings_text
from calibrate.session import Speed
from model.machine.kernels.attention import ALIGNED_KEYS, VectorAttention, is_unfused
from model.network.weight_format import WeightFormat, weight_format


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Writes the probes for a device, a grid and a choice of sizes.

    `vector` is the rule of the runtime's own kernel of attention, where its tables have one.
    """

    device: str
    vector: VectorAttention | None
    speed: Speed
    forms: tuple[WeightFormat, ...]
    grid: Grid
    sizes: tuple[Dimensions, ...]
    vocab: int

    def probes(self) -> Iterator[Probe]:
        """All of them, in the order of a sweep."""
        passes = PassAuthor(
            device=self.device,
            speed=self.speed,
            first_form=self.forms[0],
            grid=self.grid,
            sizes=self.sizes,
            vocab=self.vocab,
        )
        # First here is last in the second sweep: a busy host is seldom busy both times.
        for form in self.forms:
            yield from passes.hosts(form)
        yield self._small("op", ())
        for operation in ("copy", "sum"):
            yield self._copy(operation)
        for depth, columns in self.shapes():
            yield from self._links(depth, columns)
            for form in self.forms:
                if form.fits(depth):
                    yield from self._linears(form, depth, columns)
        for heads in self.grid.heads:
            yield from self._attention(*heads)
            for sequences in self.grid.batches:
                yield from self._attention(*heads, sequences=sequences)
        for form in self.forms:
            for experts in self.grid.experts:
                yield from self._experts(form, *experts)
            yield from passes.stacks(form)

    def shapes(self) -> Iterator[tuple[int, int]]:
        """(depth, columns) of the matrices that models have, siblings merged."""
        for size in self.sizes:
            yield size.hidden, size.hidden
            if self.grid.merged:
                yield size.hidden, size.merged_columns
            yield size.hidden, 2 * size.intermediate
            yield size.intermediate, size.hidden
        for size in self.sizes[: self.grid.vocab_depths]:
            yield size.hidden, self.vocab

    def reference(self) -> Probe:
        """The kernel that is timed again and again: one row, one matrix of the middle size."""
        form = weight_format("fp32" if self.device == "cpu" else "bf16")
        side = self.sizes[len(self.sizes) // 2].hidden
        size_bytes = form.matrix_bytes(side, side)
        settings = (("format", form.name), ("depth", side), ("columns", side), ("rows", 1))
        return Probe(
            probe=REFERENCE,
            settings=settings,
            material=REFERENCE,
            unit_s=self._product_s(form, side, side, 1),
            make_s=0.1,
            memory_bytes=self._cold.total_bytes(size_bytes),
        )

    @property
    def _cold(self) -> Cold:
        return cold(self.device)

    def _product_s(self, form: WeightFormat, depth: int, columns: int, rows: int) -> float:
        """A guess of the time of a product and its link."""
        read_s = depth * columns * form.bits_per_weight / 8 / self.speed.bytes_per_s
        multiply_s = rows * depth * columns / self.speed.row_weights_per_s
        return 2 * self.speed.kernel_s + max(read_s, multiply_s)

    def _small(self, probe: str, settings: Settings) -> Probe:
        return Probe(
            probe=probe,
            settings=settings,
            material="",
            unit_s=self.speed.kernel_s,
            make_s=0.0,
            memory_bytes=0,
        )

    def _copy(self, operation: str) -> Probe:
        size_bytes = self._cold.enough_bytes // 2
        return Probe(
            probe="copy",
            settings=(("operation", operation), ("bytes", size_bytes)),
            material="",
            unit_s=2 * size_bytes / self.speed.bytes_per_s,
            make_s=0.0,
            memory_bytes=4 * size_bytes,
        )

    def _links(self, depth: int, columns: int) -> Iterator[Probe]:
        rows = self.grid.rows
        for some in (rows[0], rows[len(rows) // 2], rows[-1]):
            shape = (("depth", depth), ("columns", columns), ("rows", some))
            yield self._small("link", shape)

    def _linears(self, form: WeightFormat, depth: int, columns: int) -> Iterator[Probe]:
        needed_bytes = self._cold.total_bytes(form.matrix_bytes(columns, depth))
        matrix = (("format", form.name), ("depth", depth), ("columns", columns))
        for rows in self.grid.rows:
            yield Probe(
                probe="linear",
                settings=(*matrix, ("rows", rows), ("link_ops", 1)),
                material=settings_text(matrix),
                unit_s=self._product_s(form, depth, columns, rows),
                make_s=self.speed.made_s(needed_bytes),
                memory_bytes=needed_bytes,
            )

    def _attention(
        self, query_heads: int, kv_heads: int, head_dim: int, sequences: int = 1
    ) -> Iterator[Probe]:
        heads = (("query_heads", query_heads), ("kv_heads", kv_heads), ("head_dim", head_dim))
        several = (("sequences", sequences),) if sequences > 1 else ()
        entry_bytes = 4 if self.device == "cpu" else 2
        for context in self.grid.contexts:
            cache = (*heads, ("context", context), *several)
            cache_bytes = 2 * sequences * kv_heads * head_dim * context * entry_bytes
            needed_bytes = self._cold.total_bytes(cache_bytes)
            for rows in self.grid.attention_rows if sequences == 1 else (1,):
                unfused = is_unfused(
                    self.vector,
                    rows=rows,
                    sequences=sequences,
                    query_heads_per_kv_head=query_heads // kv_heads,
                    head_dim=head_dim,
                )
                pairs = 2 * sequences * rows * query_heads * head_dim * context
                for turned in turns(rows, sequences) if unfused else ((),):
                    yield Probe(
                        probe="attention",
                        settings=(*cache, ("rows", rows), *turned),
                        material=settings_text(cache),
                        unit_s=self.speed.kernel_s
                        + max(
                            rows * cache_bytes / self.speed.bytes_per_s,
                            2 * pairs / self.speed.row_weights_per_s,
                        ),
                        make_s=self.speed.made_s(needed_bytes),
                        memory_bytes=needed_bytes,
                    )

    def _experts(
        self, form: WeightFormat, hidden: int, intermediate: int, num_experts: int, top_k: int
    ) -> Iterator[Probe]:
        layer = (
            ("format", form.name),
            ("hidden", hidden),
            ("intermediate", intermediate),
            ("num_experts", num_experts),
            ("top_k", top_k),
        )
        pair_s = 3 * self._product_s(form, hidden, intermediate, 1)
        layer_bytes = 3 * num_experts * form.matrix_bytes(intermediate, hidden)
        needed_bytes = self._cold.total_bytes(layer_bytes)
        for tokens in self.grid.tokens:
            yield Probe(
                probe="experts",
                settings=(*layer, ("tokens", tokens), ("link_ops", 2)),
                material=settings_text(layer),
                unit_s=tokens * top_k * pair_s,
                make_s=self.speed.made_s(2 * needed_bytes),
                memory_bytes=needed_bytes,
            )


def turns(rows: int, sequences: int) -> tuple[Settings, ...]:
    """The numbers of contexts that scores in memory are timed over: all alignments, or the best.

    The best only where a pass can stay at one context: a batch grows with every pass.
    """
    several: Settings = (("contexts", ALIGNED_KEYS),)
    return (several,) if sequences > 1 or rows == 1 else (several, (("contexts", 1),))
