"""Makes the runs of a plan one after another, and keeps each as soon as it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from calibrate.campaign.arms import SAME
from calibrate.campaign.conduct_mlx_vlm import MlxVlmConductor
from calibrate.campaign.plan import PlannedRun
from calibrate.campaign.shelf import Shelf, check_format
from calibrate.decode import Pace, decode
from calibrate.decoding.loops import arm
from calibrate.decoding.lossless import compared, divergence
from calibrate.decoding.start import Start
from calibrate.environment import free_bytes
from calibrate.host_witness import HostWitness
from calibrate.mlx_device import release
from calibrate.networks import Network
from calibrate.open_network import checkpoint_of
from calibrate.prompts import prompt_tokens
from calibrate.run_memory import check_memory, needed_bytes
from calibrate.run_record import Run


@final
class Conductor:
    """Networks and caches that neighbouring runs share.

    Random weights start from caches of random keys and values; real ones read the prompt once
    for each context. No run is begun before the host is quiet, where there is one to ask.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        shelf: Shelf | None = None,
        host: HostWitness | None = None,
    ) -> None:
        self._say = say
        self._host = host
        self._shelf = shelf or Shelf()
        self._start: tuple[tuple[object, ...], Start] | None = None
        self._plain: dict[tuple[object, ...], Run] = {}
        self._by_mlx_vlm = MlxVlmConductor(host)

    def run(self, planned: PlannedRun) -> Run:
        """Make one run.

        Raises:
            InputError: it does not fit, or its networks or settings cannot be run.
        """
        if planned.by_mlx_vlm:
            self._forget()
            return self._by_mlx_vlm.run(planned)
        self._by_mlx_vlm.forget()
        place = (*planned.network, planned.context)
        if self._start is not None and self._start[0] != place:
            self._start = None
            release()
        specs = (planned.network,) if planned.draft is None else (planned.network, planned.draft)
        spare_bytes = caches_bytes(planned)
        target, *others = self._shelf.bring(specs, spare_bytes)
        check_format(planned.network, target)
        check_memory(planned.text, spare_bytes, free_bytes())
        draft = target if planned.settings.draft == SAME else (others or [None])[0]
        start = self._started(place, target, planned.context)
        made = arm(target, planned.recorded, draft)
        for network in made.networks:
            if not start.holds(network):
                hold(start, network)
        limit_s = planned.limit_s or None
        try:
            run = decode(made, start, planned.tokens, Pace(limit_s=limit_s, host=self._host))
        finally:
            if made.draft is not None and made.draft is not target:
                start.forget(made.draft)
        return self._compared(place, run, target, start)

    def _forget(self) -> None:
        """Keep nothing in memory: what comes next is another library's."""
        self._start = None
        self._shelf.clear()

    def _started(self, place: tuple[object, ...], target: Network, context: int) -> Start:
        if self._start is None:
            self._start = place, Start(prompt_tokens(target, context))
        return self._start[1]

    def _compared(self, place: tuple[object, ...], run: Run, target: Network, start: Start) -> Run:
        """The run beside plain decoding; where it differs, how near a tie that was is said."""
        if run.strategy == "plain":
            self._plain[place] = run
            return run
        plain = self._plain.get(place)
        if plain is None:
            return run
        run = compared(run, plain)
        if said := divergence(run, plain, target, start.tokens):
            self._say(said)
        return run


def caches_bytes(planned: PlannedRun) -> float:
    """What a run takes beside the weights, and the caches of its start, kept as they are."""
    target = checkpoint_of(*planned.network)
    is_own = planned.settings.draft == SAME
    draft = target if is_own else None
    if planned.draft is not None:
        draft = checkpoint_of(*planned.draft)
    positions = planned.context + planned.tokens
    needed = needed_bytes(planned.recorded, target, draft, positions=positions, shared=is_own)
    kept = float(target.kv_cache_bytes(planned.context))
    weights = target.total_bytes
    if draft is not None:
        kept += float(draft.kv_cache_bytes(planned.context))
        weights += 0 if is_own else draft.total_bytes
    return needed - weights + kept


def hold(start: Start, network: Network) -> None:
    """Keep the network's caches at the start."""
    if network.weights == "random":
        start.fill(network)
    else:
        start.read(network)
