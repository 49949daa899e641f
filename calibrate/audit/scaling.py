r"""A rule on the sizes of a series: a larger network loses no more than its bytes and layers add.

A plain pass of a network of L alike layers and W bytes takes, on one machine and runtime,

.. math:: t = a L + W / B

with a and B the same for all networks of its kind, so between two of them

.. math:: \frac{t_2}{t_1} \le \max\Bigl(\frac{L_2}{L_1}, \frac{W_2}{W_1}\Bigr)

whatever a and B are. A run beyond that was slowed by something that the other escaped: heat,
which long runs gather, swap, or another load. Kinds are told apart by what makes a layer dearer:
experts, recurrences, latents and norms. It does not hold at long contexts, whose cache has a cost
of its own, nor where one file was computed in other numbers than the rest (16-bit floats that M1
emulates cost up to 20 %, which the tolerance leaves).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from calibrate.audit.groups import reach
from calibrate.audit.roof import SHORT_CONTEXT
from calibrate.audit.rounding import most
from calibrate.published.names import target_of
from calibrate.published.refusal import Refusal
from calibrate.published.run_row import PublishedRun
from model.cost.layer_extras import USUAL_NORMS
from model.network.checkpoint import Checkpoint
from model.network.mixer import LatentAttention, MixerKind

TOLERANCE = 1.25
"""Two honest plain runs of one setting differ by 14 % between sessions; this is beyond it."""


def series_key(run: PublishedRun) -> tuple[object, ...] | None:
    """Plain runs of one source, machine, tool, format and kind of network; None if not one."""
    if run.strategy != "plain" or run.batch > 1 or not run.decode_tokens_per_s or not run.chip:
        return None
    target = target_of(run)
    if isinstance(target, Refusal) or (run.context_tokens or 0.0) > SHORT_CONTEXT:
        return None
    machine = run.chip, run.gpu_cores, run.memory_bytes
    tool = run.runtime, run.runtime_version, run.source, run.quant
    return *machine, *tool, *layer_kind(target)


def layer_kind(target: Checkpoint) -> tuple[bool, bool, bool, bool]:
    """Whether a network has routed experts, recurrences, latent attention and further norms."""
    architecture = target.architecture
    layers = architecture.layers
    norms = max(layer.vector_params for layer in layers) / architecture.hidden_size
    mixers = [layer.mixer for layer in layers if layer.mixer is not None]
    return (
        any(layer.experts is not None for layer in layers),
        any(each.kind is MixerKind.RECURRENT for each in mixers),
        any(isinstance(each, LatentAttention) for each in mixers),
        round(norms) > USUAL_NORMS,
    )


def slower_than_scaling(run: PublishedRun, group: Sequence[PublishedRun]) -> str | None:
    """A run that takes 25 % longer than the bytes and layers of another of its series allow.

    Only runs that reach its context or a longer one are held against it.
    """
    own = target_of(run)
    if isinstance(own, Refusal) or not run.decode_tokens_per_s:
        return None
    allowed = [
        (other.decode_tokens_per_s / growth(other, own), other)
        for other in group
        if other.decode_tokens_per_s and reach(other) >= reach(run)
    ]
    fastest, witness = max(allowed, key=lambda each: each[0])
    if most(run.decode_tokens_per_s) * TOLERANCE >= fastest:
        return None
    return (
        f"{run.decode_tokens_per_s:.4g} tok/s, where {witness.target} at "
        f"{witness.decode_tokens_per_s:.4g} ({witness.id}) leaves at least {fastest:.4g} for as "
        "many more bytes and layers: heat, swap, or another load"
    )


def growth(of: PublishedRun, to: Checkpoint) -> float:
    """How many times longer a pass of `to` takes than one of a run's target, at most."""
    start = target_of(of)
    if isinstance(start, Refusal):
        return float("inf")
    return max(
        to.weight_bytes_per_token / start.weight_bytes_per_token,
        to.architecture.blocks / start.architecture.blocks,
    )


def slowed(runs: Iterable[PublishedRun]) -> frozenset[str]:
    """The ids of runs that the rule objects to."""
    series: dict[tuple[object, ...], list[PublishedRun]] = {}
    for run in runs:
        key = series_key(run)
        if key is not None:
            series.setdefault(key, []).append(run)
    return frozenset(
        run.id
        for group in series.values()
        if len(group) > 1
        for run in group
        if slower_than_scaling(run, group) is not None
    )
