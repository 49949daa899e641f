"""Makes the runs of a plan that mlx-vlm decodes: block diffusion, trained heads, and plain beside.

Its networks are other modules than mlx-lm's of the same weights, and its loops keep their caches to
themselves, so that nothing is shared with the other runs.
"""

from __future__ import annotations

from typing import final

from calibrate.campaign.plan import PlannedRun
from calibrate.campaign.shelf import Spec, check_format
from calibrate.decode import Pace, decode
from calibrate.decoding.lossless import compared
from calibrate.decoding.start import Start
from calibrate.environment import free_bytes
from calibrate.host_witness import HostWitness
from calibrate.mlx_device import release
from calibrate.networks import Network
from calibrate.open_network import checkpoint_of
from calibrate.prompts import prompt_tokens
from calibrate.run_memory import check_memory, needed_by_mlx_vlm
from calibrate.run_record import Run
from calibrate.vlm.diffusion import open_diffusion, run_diffusion
from calibrate.vlm.heads import Head, check_target, open_head
from calibrate.vlm.library import require
from calibrate.vlm.networks import open_network
from calibrate.vlm.rounds import head_arm, plain_arm
from model.network.head_target import load_head


@final
class MlxVlmConductor:
    """The target and the head that neighbouring runs share; one of each at a time."""

    def __init__(self, host: HostWitness | None = None) -> None:
        self._host = host
        self._target: tuple[Spec, Network] | None = None
        self._head: tuple[Spec, Head] | None = None
        self._plain: dict[tuple[Spec, int], Run] = {}

    def run(self, planned: PlannedRun) -> Run:
        """Make one run.

        Raises:
            InputError: mlx-vlm is not installed, or it does not fit or cannot be run.
        """
        require("the run")
        self._make_room(planned)
        target = self._bring_target(planned)
        head = None if planned.draft is None else self._bring_head(planned.draft, planned.target)
        prompt = prompt_tokens(target, planned.context)
        settings, place = planned.recorded, (planned.network, planned.context)
        if settings.block:
            return run_diffusion(target, prompt, planned.tokens, settings, host=self._host)
        arm = plain_arm(target) if head is None else head_arm(target, head, settings)
        pace = Pace(limit_s=planned.limit_s or None, host=self._host)
        run = decode(arm, Start(prompt), planned.tokens, pace)
        if head is None:
            self._plain[place] = run
            return run
        return compared(run, self._plain[place]) if place in self._plain else run

    def forget(self) -> None:
        """Keep no network in memory."""
        if self._target is not None:
            self._target = self._head = None
            release()

    def _make_room(self, planned: PlannedRun) -> None:
        """Drop what this run does not need, and refuse it where it does not fit then."""
        if self._target is not None and self._target[0] != planned.network:
            self.forget()
        if self._head is not None and planned.draft not in (None, self._head[0]):
            self._head = None
            release()
        target, head = checkpoint_of(*planned.network), None
        if planned.draft is not None:
            head = load_head(*planned.draft[:2], target)[0]
        needed = needed_by_mlx_vlm(
            planned.recorded, target, head, context=planned.context, tokens=planned.tokens
        )
        held = 0 if self._target is None else self._target[1].total_bytes
        if head is not None and self._head is not None:
            held += self._head[1].network.total_bytes
        check_memory(planned.text, needed - held, free_bytes())

    def _bring_target(self, planned: PlannedRun) -> Network:
        if self._target is None:
            opener = open_diffusion if planned.settings.block else open_network
            self._target = planned.network, opener(*planned.network)
        check_format(*self._target)
        return self._target[1]

    def _bring_head(self, spec: Spec, target: str) -> Head:
        if self._head is None:
            head = open_head(*spec, target)
            check_target(target, head)
            self._head = spec, head
        check_format(spec, self._head[1].network)
        return self._head[1]
