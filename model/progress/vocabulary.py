"""The words of the published acceptance table, grouped by hand: methods, tasks and measures.

Every method, task and definition that the table writes has an entry here, and a test holds the
two together. A text is never guessed at when the table is read: what is not the kind of thing
that the group names goes to None, and is kept in the table and offered under no name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, final


@final
class Method(StrEnum):
    """Where the tokens come from that a pass checks or commits."""

    DRAFT_MODEL = "draft-model"
    MTP_HEAD = "mtp-head"
    EAGLE = "eagle"
    DRAFT_HEADS = "draft-heads"  # Medusa, Hydra, ReDrafter: heads on the target's last state
    BLOCK_DRAFTER = "block-drafter"  # DFlash, DSpark: one pass drafts a block
    PROMPT_LOOKUP = "prompt-lookup"
    LAYER_SKIP = "layer-skip"
    BLOCK_DIFFUSION = "block-diffusion"


@final
class Task(StrEnum):
    """What is generated. At most twelve, so that a refusal can list them."""

    CHAT = "chat"
    CODE = "code"
    KNOWLEDGE = "knowledge"  # multiple choice
    MATH = "math"
    MIXED = "mixed"  # a mean over several of the others
    QA = "qa"
    RAG = "rag"
    REASONING = "reasoning"  # puzzles, logic, physics problems
    STRUCTURED = "structured"  # enumerations and other text that repeats its own form
    SUMMARIZATION = "summarization"
    TRANSLATION = "translation"
    WRITING = "writing"  # prose and explanations


@final
class Measure(StrEnum):
    """What a published number counts; model.progress.acceptance has the equations."""

    TOKENS_PER_PASS = "tokens per pass"
    ACCEPTED_FRACTION = "accepted fraction"
    ACCEPTED_PER_ROUND = "accepted per round"
    DRAFT_SHARE = "draft share"
    SURVIVAL = "survival by depth"
    UNLABELLED = "unlabelled"


METHODS: Final[dict[str, Method | None]] = {
    "draft model": Method.DRAFT_MODEL,
    "SpS": Method.DRAFT_MODEL,
    "MTP head": Method.MTP_HEAD,
    "MTP head, p-min gate": Method.MTP_HEAD,
    "EAGLE": Method.EAGLE,
    "EAGLE2": Method.EAGLE,
    "EAGLE3": Method.EAGLE,
    "EAGLE-3": Method.EAGLE,
    "Hydra": Method.DRAFT_HEADS,
    "Medusa": Method.DRAFT_HEADS,
    "ReDrafter": Method.DRAFT_HEADS,
    "DFlash": Method.BLOCK_DRAFTER,
    "DFlash2": Method.BLOCK_DRAFTER,
    "DSpark": Method.BLOCK_DRAFTER,
    "PLD": Method.PROMPT_LOOKUP,
    "n-gram lookup": Method.PROMPT_LOOKUP,
    "SWIFT": Method.LAYER_SKIP,
    "self-spec, block of middle layers skipped": Method.LAYER_SKIP,
    "block diffusion": Method.BLOCK_DIFFUSION,
    "Fast-dLLM": Method.BLOCK_DIFFUSION,
    "D2F": Method.BLOCK_DIFFUSION,
    "dParallel": Method.BLOCK_DIFFUSION,
    "d3LLM": Method.BLOCK_DIFFUSION,
    "SAMD[EAGLE2]": None,  # a lookup and a head together
    "REST": None,  # looks tokens up in a datastore, not in the prompt
    "Recycling": None,  # looks tokens up in earlier candidates
    "Lookahead": None,  # Jacobi steps of the target itself
}

TASKS: Final[dict[str, Task | None]] = {
    "Spec-Bench overall": Task.MIXED,
    "average": Task.MIXED,
    "chat+code+math mean": Task.MIXED,
    "chat+code+math mean, greedy": Task.MIXED,
    "mean of 9 prompts": Task.MIXED,
    "chat, greedy": Task.CHAT,
    "code, greedy": Task.CODE,
    "source code": Task.CODE,
    "source code, 300 tokens": Task.CODE,
    "agent-style code, greedy": Task.CODE,
    "158-token code prompt, 200 new": Task.CODE,
    "quicksort": Task.CODE,
    "math, greedy": Task.MATH,
    "math (functional equation), greedy": Task.MATH,
    "GSM8K-CoT": Task.MATH,
    "MATH": Task.MATH,
    "enumeration": Task.STRUCTURED,
    "structured prompts, temp 0": Task.STRUCTURED,
    "prose": Task.WRITING,
    "travel blog prompt, greedy": Task.WRITING,
    "day trip": Task.WRITING,
    "Pythagoras": Task.WRITING,  # an explanation of the theorem, not a calculation
    "short explanation, 128 tokens": Task.WRITING,
    "long-form explanation, 300 tokens": Task.WRITING,
    "200-word explanation, temp 0": Task.WRITING,
    "coherent technical document prefix": Task.WRITING,
    "TriviaQA": Task.QA,
    "GPQA": Task.KNOWLEDGE,
    "MMLU-Pro": Task.KNOWLEDGE,
    "C-EVAL": Task.KNOWLEDGE,
    "PIQA": Task.KNOWLEDGE,
    "HellaSwag": Task.KNOWLEDGE,
    "OCNLI": Task.KNOWLEDGE,
    "PHYBench": Task.REASONING,
    "BBH": Task.REASONING,
    "BBEH": Task.REASONING,
    "bbh-zh": Task.REASONING,
    "MuSR": Task.REASONING,
    "ZebraLogic": Task.REASONING,
    "PrOntoQA": Task.REASONING,
    "KOR-Bench": Task.REASONING,
    "": None,
    "long answer": None,
    "24 configs (2 models x 4 skip fractions x 3 draft lengths)": None,
    **{f"prompt {number}": None for number in range(1, 10)},  # not said what they ask
    **{f"p-min {gate}": None for gate in ("0.0", "0.3", "0.5", "0.7", "0.85")},
}

MEASURES: Final[dict[str, Measure]] = {
    "accepted/drafted": Measure.ACCEPTED_FRACTION,
    "accepted/attempted": Measure.ACCEPTED_FRACTION,
    "aggregate accepted/drafted": Measure.ACCEPTED_FRACTION,
    "of drafted": Measure.ACCEPTED_FRACTION,
    "derived (tokens_per_pass-1)/beam_length; only for beam width 1": Measure.ACCEPTED_FRACTION,
    "accepted per round": Measure.ACCEPTED_PER_ROUND,
    "1 - cycles/tokens (share of emitted tokens that were drafted), NOT per-draft acceptance": (
        Measure.DRAFT_SHARE
    ),
    # Counted over all rounds at every depth: the counters that print it are accepted_by_depth and
    # drafted_by_depth, and the second is the same at each depth.
    "per depth position": Measure.SURVIVAL,
    "": Measure.UNLABELLED,
    "LM Studio 'accepted draft tokens'": Measure.UNLABELLED,  # of the output or of the drafted
    "aggregate": Measure.UNLABELLED,  # behind a confidence gate
    "draft acceptance": Measure.UNLABELLED,
    "as stated": Measure.UNLABELLED,
}
"""The definition of the acceptance column; the tokens per pass have a column of their own."""
