"""From a probe to the work it asks for; what the work is made of is shared between neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from calibrate import kernels, mlx_device, stacks
from calibrate.probe import Probe
from calibrate.probe_network import config_of
from calibrate.samples import REFERENCE
from calibrate.timing import Workload


@final
class Shelf:
    """Holds one piece of material: the last one is let go before the next is made."""

    def __init__(self) -> None:
        self._label = ""
        self._held: Any = None

    def get(self, label: str, make: Callable[[], Any]) -> Any:
        """The material of that label, made if it is not the one at hand."""
        if label != self._label:
            self.clear()
            self._held = make()
            self._label = label
        return self._held

    def clear(self) -> None:
        """Let go of everything, also of what MLX keeps for later."""
        self._held, self._label = None, ""
        mlx_device.release()


@final
class Workshop:
    """Makes the workload of each probe. The reference kernel's matrices are kept throughout."""

    def __init__(self) -> None:
        self._shelf = Shelf()
        self._reference = Shelf()
        self._growing: dict[str, stacks.Loop] = {}
        self._makers: dict[str, Callable[[Probe], Workload]] = {
            "op": lambda _: kernels.op_chain(),
            "copy": self._copy,
            "link": self._link,
            "linear": self._linear,
            REFERENCE: self._linear,
            "attention": self._attention,
            "experts": self._experts,
            "layers": self._loop,
            "host": self._loop,
        }

    def workload(self, probe: Probe) -> Workload:
        """The work of a probe, warm or not."""
        return self._makers[probe.probe](probe)

    def clear(self) -> None:
        """Let go of the material at hand, after a failure perhaps of memory."""
        self._shelf.clear()

    def _copy(self, probe: Probe) -> Workload:
        self._shelf.clear()
        return kernels.copy_chain(
            operation=probe.text("operation"), size_bytes=probe.number("bytes")
        )

    def _link(self, probe: Probe) -> Workload:
        names = ("depth", "columns", "rows")
        return kernels.link_chain(**{name: probe.number(name) for name in names})

    def _linear(self, probe: Probe) -> Workload:
        depth, columns = probe.number("depth"), probe.number("columns")
        shelf = self._reference if probe.probe == REFERENCE else self._shelf
        matrices = shelf.get(
            probe.material, lambda: kernels.Matrices(probe.text("format"), depth, columns)
        )
        rows = probe.number("rows")
        return kernels.linear_chain(matrices, depth=depth, columns=columns, rows=rows)

    def _attention(self, probe: Probe) -> Workload:
        numbers = {name: probe.number(name) for name in ("kv_heads", "head_dim", "context")}
        caches = self._shelf.get(
            probe.material,
            lambda: kernels.Caches(**numbers, sequences=probe.number("sequences", 1)),
        )
        return kernels.attention_chain(
            caches,
            query_heads=probe.number("query_heads"),
            head_dim=probe.number("head_dim"),
            rows=probe.number("rows"),
            contexts=probe.number("contexts", 0),
        )

    def _experts(self, probe: Probe) -> Workload:
        names = ("hidden", "intermediate", "num_experts", "top_k")
        numbers = {name: probe.number(name) for name in names}
        experts = self._shelf.get(
            probe.material, lambda: stacks.Experts(probe.text("format"), **numbers)
        )
        del numbers["intermediate"]
        return stacks.experts_chain(experts, **numbers, tokens=probe.number("tokens"))

    def _loop(self, probe: Probe) -> Workload:
        """A loop over passes. Growing ones are kept, and go on where the last sweep stopped.

        Begun anew they would meet the contexts of the last sweep, for which all is planned. Their
        network is so narrow that keeping it takes next to no memory.
        """
        if probe.text("mode") != "growing":
            return self._made_loop(probe)
        if probe.label not in self._growing:
            self._growing[probe.label] = self._made_loop(probe)
        return self._growing[probe.label]

    def _made_loop(self, probe: Probe) -> stacks.Loop:
        network = self._shelf.get(
            probe.material,
            lambda: stacks.random_model(config_of(dict(probe.settings)), probe.text("format")),
        )
        passes = stacks.Passes(
            network,
            format_name=probe.text("format"),
            rows=probe.number("rows"),
            context=probe.number("context"),
            sequences=probe.number("sequences", 1),
        )
        return stacks.Loop(passes, probe.text("mode"))
