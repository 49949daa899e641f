r"""What ReDrafter's benchmark counts: beams, their tokens, rounds, and a prefill in every time.

Read from apple/ml-recurrent-drafter, `recurrent_drafting/mlx/experiments`; the notes of its rows
say which they are.

* A beam's length counts the token that the target had already chosen: drafted are one fewer
  (`Drafter.beam_search_candidates` loops `beam_shape.length - 1` times).
* Rounds are one more than its steps (`recurrent_drafting_generate` takes the first output before it
  counts), and commit one token fewer than the answer has, whose first is of the prefill:

.. math:: E = \frac{n - 1}{n / E_{stated} + 1}

* Times are of the whole answer, prompt included, of the strategy and of plain decoding alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

from calibrate.published.run_row import PublishedRun

BEAMS = re.compile(r"beam width (\d+) \(k = beam length\)")
COUNTED = re.compile(r"tokens_per_pass = (\d+)/steps")
PREFILL = re.compile(r"end-to-end incl\. prefill of (\d+) tokens")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BeamRun:
    """A round's beams and the tokens that each drafts; None where the run does not say."""

    beams: int
    draft_length: int | None
    tokens_per_pass: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WholeAnswer:
    """A time that holds a prefill of `prompt_tokens` and an answer of `answer_tokens`."""

    prompt_tokens: int
    answer_tokens: int


def beam_run(run: PublishedRun) -> BeamRun | None:
    """The beams of a run whose notes state them; None of any other run."""
    found = BEAMS.search(run.notes)
    if found is None:
        return None
    length = run.draft_length
    return BeamRun(
        beams=int(found[1]),
        draft_length=None if length is None or length < 2 else length - 1,
        tokens_per_pass=_committed(run),
    )


def whole_answer(run: PublishedRun) -> WholeAnswer | None:
    """What a run's times hold beside decoding; None where they hold nothing else."""
    prefill, counted = PREFILL.search(run.notes), COUNTED.search(run.notes)
    if prefill is None or counted is None:
        return None
    return WholeAnswer(prompt_tokens=int(prefill[1]), answer_tokens=int(counted[1]))


def _committed(run: PublishedRun) -> float | None:
    """Tokens that a round committed; as stated where the run does not say how it counted."""
    stated, counted = run.tokens_per_pass, COUNTED.search(run.notes)
    if stated is None or stated < 1.0 or counted is None:
        return stated
    answer_tokens = int(counted[1])
    # The answer is cut at its length, so that a last round may lose tokens and none is added.
    return max(1.0, (answer_tokens - 1) / (answer_tokens / stated + 1))
