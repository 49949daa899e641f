"""The laws of attention over a cache: by one kernel, in two passes, or through scores in memory.

Which of them a timing belongs to is the runtime's rule (:mod:`model.machine.kernels.attention`).
Each is a row law (:mod:`calibrate.fit.law_fit`) of what is left when the floor of the kernels is
taken off, and what the scores cost in memory (:mod:`calibrate.fit.scores`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from calibrate.fit.laws import FittedLaw, fitted, net_seconds, sigmas_log
from calibrate.fit.observations import Observations
from calibrate.fit.scores import score_constant, scores_of
from calibrate.samples import Sample
from model.cost.cache_cost import cache_product
from model.cost.unfused_attention import scores_product
from model.machine.constant import Constant
from model.machine.kernels.attention import VectorAttention, is_unfused, leaves_scores
from model.machine.kernels.dispatch import Kernel
from model.machine.profile import ALIGNED, SCORE, TWO_PASS, UNFUSED
from model.network.mixer import Attention

SCORES = (UNFUSED, ALIGNED)
"""Laws whose matrix is the scores, and not the cache."""
DEPTH_POWERS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""By which the time of scores may grow with the context: cuBLAS cuts up long ones."""


def fit_attention(
    samples: Iterable[Sample],
    kernel_s: float,
    jitter_s: float,
    element_bytes: int,
    vector: VectorAttention | None = None,
) -> tuple[dict[str, FittedLaw], dict[str, Constant]]:
    """The laws of attention over a cache by their shapes, of what was timed, and `score_s`.

    `vector` is the rule of the runtime's own kernel, where its tables have one.
    """
    groups: dict[str, list[Sample]] = {"": [], TWO_PASS: [], UNFUSED: [], ALIGNED: []}
    for sample in samples:
        if sample.probe == "attention":
            groups[attention_shape(sample, vector)].append(sample)
    score: Constant | None = None
    known: dict[str, dict[int, Kernel | None]] = {UNFUSED: {1: None}}
    if leaves_scores(vector):
        aligned = groups[ALIGNED]
        score = score_constant(aligned, sigmas_log(aligned, jitter_s), vector.beyond_tile_rows)
        tiled = Kernel(
            name=UNFUSED, tile_rows=vector.beyond_tile_rows, pads=True, reread=1.0, rate=""
        )
        known = {
            "": {1: None},
            TWO_PASS: {1: None},
            UNFUSED: {1: None, vector.most_rows + 1: tiled},
            ALIGNED: {vector.most_rows + 1: tiled},
        }
    floors = attention_floors_s(groups, kernel_s)
    laws = {
        shape: fitted(
            attention_observations(
                group,
                floors[shape],
                jitter_s,
                element_bytes,
                unfused=shape in SCORES,
                score_s=score.value if score else 0.0,
            ),
            "",
            shape,
            known.get(shape),
            depth_powers=DEPTH_POWERS if shape in SCORES else (1.0,),
        )
        for shape, group in groups.items()
        if group
    }
    return laws, {} if score is None else {SCORE: score}


def attention_shape(sample: Sample, vector: VectorAttention | None) -> str:
    """By which law a probe of attention is priced: of one pass, of two, or of no one kernel.

    Of the last those over one number of keys, which is aligned, are told from those over several.
    """
    if is_unfused(
        vector,
        rows=sample.number("rows"),
        sequences=sample.number("sequences", 1),
        query_heads_per_kv_head=sample.number("query_heads") // sample.number("kv_heads"),
        head_dim=sample.number("head_dim"),
    ):
        return ALIGNED if sample.number("contexts", 0) == 1 else UNFUSED
    most = None if vector is None else vector.one_pass_to_context
    return "" if most is None or sample.number("context") <= most else TWO_PASS


def attention_floors_s(groups: Mapping[str, list[Sample]], kernel_s: float) -> dict[str, float]:
    """The time of attention with next to nothing to attend to: the fastest of all.

    One for what has a kernel and one for what has none. Whole layers are timed at a short context,
    so that their own constants hold it.
    """
    floors: dict[str, float] = {}
    for kinds in (("", TWO_PASS), SCORES):
        shortest = kinds if kinds == SCORES else kinds[:1]
        seconds = [sample.seconds for kind in shortest for sample in groups.get(kind, ())]
        floors |= dict.fromkeys(kinds, max(kernel_s, min(seconds, default=kernel_s)))
    return floors


def attention_observations(
    samples: list[Sample],
    floor_s: float,
    jitter_s: float,
    element_bytes: int,
    *,
    unfused: bool,
    score_s: float = 0.0,
) -> Observations:
    """Attention as a product, as the model has it, net of floor and traffic."""
    mixers = [
        Attention(
            query_heads=sample.number("query_heads"),
            kv_heads=sample.number("kv_heads"),
            head_dim=sample.number("head_dim"),
        )
        for sample in samples
    ]
    products = [
        scores_product(
            mixer, sample.number("context"), element_bytes, sample.number("sequences", 1)
        )
        if unfused
        else cache_product(mixer, sample.number("context"), element_bytes)
        for mixer, sample in zip(mixers, samples, strict=True)
    ]
    moved_s = score_s * np.array([scores_of(sample) for sample in samples]) if unfused else 0.0
    return Observations(
        rows=np.array([sample.number("rows") for sample in samples], dtype=float),
        read_bytes=np.array([each.read_bytes for each in products], dtype=float),
        depth=np.array([each.depth for each in products], dtype=float),
        columns=np.array([each.columns for each in products], dtype=float),
        seconds=net_seconds(samples, floor_s + moved_s),
        sigma_log=sigmas_log(samples, jitter_s, floor_s + moved_s),
    )
