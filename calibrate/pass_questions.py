"""The probes of whole passes: what is asked of a device, and of its host, with a few layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from calibrate.grid import FAST_VOCAB, NARROW, Dimensions, Grid
from calibrate.probe import Probe
from calibrate.probe_network import MIXTURE, NORMED, PLAIN
from calibrate.samples import Settings, settings_text
from calibrate.session import Speed
from model.machine.kernels.attention import ALIGNED_KEYS
from model.network.weight_format import WeightFormat

SEVERAL_ROWS = (2, 5)
"""Rows that make no product of vectors, and rows that CUDA's kernel of attention does not take."""
HOST_CONTEXT = 64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PassAuthor:
    """Writes the probes of passes for a device, a grid and a choice of sizes."""

    device: str
    speed: Speed
    first_form: WeightFormat
    grid: Grid
    sizes: tuple[Dimensions, ...]
    vocab: int

    def stacks(self, form: WeightFormat) -> Iterator[Probe]:
        """Two widths; of the first, two depths, so that layer and pass come apart."""
        grid, first, second = self.grid, self.sizes[0], self.sizes[len(self.sizes) // 2]
        near, far = grid.contexts[0], grid.contexts[2]
        # A processor is its own host: there is no time in which it could run ahead of itself.
        device = "pipelined" if self.device == "cpu" else "queued"
        deep, flat = self._network(first, form, 4), self._network(first, form, 1)
        other = self._network(second, form, 2)
        yield from self._layers(deep, near, device, grid.layer_rows)
        yield from self._layers(deep, near, "awaited", grid.awaited_rows)
        yield from self._layers(flat, near, device, grid.awaited_rows)
        yield from self._layers(flat, near, "awaited", grid.awaited_rows[:1])
        yield from self._layers(other, near, device, grid.layer_rows)
        yield from self._layers(other, near, "awaited", grid.awaited_rows[:1])
        yield from self._layers(other, far, device, grid.awaited_rows)
        for sequences in grid.batches[-1:]:
            yield from self._layers(other, near, device, (1,), sequences)
            yield from self._layers(other, far, device, (1,), sequences)
        if grid.experts:
            hidden, intermediate, num_experts, top_k = grid.experts[0]
            size = replace(second, hidden=hidden, intermediate=intermediate)
            mixed = self._network(size, form, 2, (num_experts, top_k))
            yield from self._layers(mixed, near, device, grid.awaited_rows)
        if grid.deep_layers:
            normed = replace(self._network(second, form, 2), kind=NORMED)
            yield from self._layers(normed, near, device, grid.awaited_rows)
            # What a pass that is waited for pays before its first kernel shows where it has many.
            deepest = self._network(first, form, grid.deep_layers)
            yield from self._layers(deepest, near, "awaited", grid.awaited_rows[:2])

    def _network(
        self, size: Dimensions, form: WeightFormat, layers: int, experts: tuple[int, int] = (0, 0)
    ) -> Network:
        return Network(
            size=size,
            form=form,
            layers=layers,
            vocab=32_000 if self.vocab == FAST_VOCAB else 2_048,
            kind=MIXTURE if experts[0] else PLAIN,
            experts=experts,
        )

    def _layers(
        self,
        network: Network,
        context: int,
        mode: str,
        all_rows: Sequence[int],
        sequences: int = 1,
    ) -> Iterator[Probe]:
        needed_bytes = network.total_bytes
        # Some twenty kernels of a layer are not products.
        small_s = 20 * network.layers * self.speed.kernel_s
        read_s = needed_bytes / self.speed.bytes_per_s
        several = (("sequences", sequences),) if sequences > 1 else ()
        for rows in all_rows:
            # Where scores are left in memory they lie best there; elsewhere this changes nothing.
            past = context + -rows % ALIGNED_KEYS if rows > 1 else context
            multiply_s = sequences * rows * network.weights / self.speed.row_weights_per_s
            yield Probe(
                probe="layers",
                settings=(
                    *network.settings,
                    *several,
                    ("rows", rows),
                    ("context", past),
                    ("mode", mode),
                ),
                material=settings_text(network.settings),
                unit_s=max(read_s, multiply_s) + small_s,
                make_s=0.1 + self.speed.made_s(needed_bytes),
                memory_bytes=2 * needed_bytes,
            )

    def hosts(self, form: WeightFormat) -> Iterator[Probe]:
        """Networks so narrow that only the host has work; what differs by format is submitting.

        What a kind of layer adds is told by one depth.
        """
        is_first, near = form == self.first_form, HOST_CONTEXT
        shallow = self.grid.host_layers[0]
        both = [("build", 1), ("submit", 1)]
        for layers in self.grid.host_layers:
            network = narrow(form, layers)
            arms = [("submit", rows) for rows in (1, *SEVERAL_ROWS)]
            if is_first:
                arms += [("build", 1), ("build", SEVERAL_ROWS[-1]), ("decode", 1), ("awaited", 1)]
            yield from self._host(network, arms, near)
            if is_first and layers == shallow:
                yield from self._host(network, [("submit", 1)], self.grid.contexts[1])
                for sequences in self.grid.batches[:1]:
                    yield from self._host(network, both, near, sequences)
                # What a new context costs does not depend on the number of layers.
                yield from self._host(
                    network, [("growing", rows) for rows in (1, *SEVERAL_ROWS)], near
                )
        if not is_first:
            return
        yield from self._host(narrow(form, shallow, NORMED), both, near)
        if self.grid.experts:
            arms = [*both, ("submit", SEVERAL_ROWS[0])]
            yield from self._host(narrow(form, shallow, MIXTURE), arms, near)
        for query_heads, kv_heads, head_dim in self.grid.heads:
            wide = replace(NARROW, query_heads=query_heads, kv_heads=kv_heads, head_dim=head_dim)
            one = replace(narrow(form, 1), size=wide)
            yield from self._host(one, [("growing", SEVERAL_ROWS[-1])], near)

    def _host(
        self,
        network: Network,
        arms: Sequence[tuple[str, int]],
        context: int,
        sequences: int = 1,
    ) -> Iterator[Probe]:
        several = (("sequences", sequences),) if sequences > 1 else ()
        for mode, rows in arms:
            yield Probe(
                probe="host",
                settings=(
                    *network.settings,
                    *several,
                    ("rows", rows),
                    ("context", context),
                    ("mode", mode),
                ),
                material=settings_text(network.settings),
                unit_s=20 * network.layers * self.speed.kernel_s,
                make_s=0.1,
                memory_bytes=0,
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A few layers of one kind (:mod:`calibrate.probe_network`); `experts` are their number and k.

    The experts of a mixture are as wide as the size's MLP.
    """

    size: Dimensions
    form: WeightFormat
    layers: int
    vocab: int
    kind: str = PLAIN
    experts: tuple[int, int] = (0, 0)

    @property
    def settings(self) -> Settings:
        """The network as settings of a probe; the usual kind goes without saying."""
        num_experts, top_k = self.experts
        said: Settings = (
            ("vocab", self.vocab),
            ("layers", self.layers),
            ("format", self.form.name),
        )
        if self.kind != PLAIN:
            said = (("network", self.kind), *said)
        if num_experts:
            said = (*said, ("num_experts", num_experts), ("top_k", top_k))
        return (*self.size.settings, *said)

    @property
    def weights(self) -> int:
        """All weights, those of the head included."""
        others = max(self.experts[0] - 1, 0) * 3 * self.size.hidden * self.size.intermediate
        return self.layers * (self.size.layer_weights + others) + self.vocab * self.size.hidden

    @property
    def total_bytes(self) -> int:
        """Bytes of all weights."""
        return round(self.weights * self.form.bits_per_weight / 8)


def narrow(form: WeightFormat, layers: int, kind: str = PLAIN) -> Network:
    """A network with next to nothing to do."""
    experts = (16, 8) if kind == MIXTURE else (0, 0)
    return Network(size=NARROW, form=form, layers=layers, vocab=128, kind=kind, experts=experts)
