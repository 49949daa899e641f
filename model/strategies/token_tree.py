r"""Several drafts in one round: beams of tokens that share the target's pass.

A chain drafts k tokens one after the other. W beams of k tokens each are a tree that grows out of
the last token; the target checks all of them in one pass, under a mask that shows each row its own
ancestors alone, and the beam with the longest accepted beginning stays. What that costs is rows:
each further draft pass has W of them, and the verify pass N,

.. math:: k + W \;\le\; N \;\le\; W (k + 1)

* at most, every beam brings its own copy of the last token (Apple's MLX code of ReDrafter packs
  beams so, `recurrent_drafting/mlx/tree_attention.py`, "without any compression");
* W k + 1 rows are left where beams share the last token and nothing else;
* at least, W beams that differ, and share all that they can, are a chain of k - 1 tokens with W
  last ones behind it.

How much beams share depends on the text, so N is stated by who knows it. A chain is W = 1, for
which both bounds are k + 1.

Progress is the tokens per pass that were measured. They do not follow from the acceptance of one
chain: beams share beginnings, and the second-best token is not a second sample. Were W beams
independent copies, :math:`1 + \sum_j 1 - (1 - \alpha^j)^W` tokens would be committed; ReDrafter's
chain of 2 commits 1.79, which would make 2.24 for two beams and 2.50 for three, and they commit
1.97 and 2.12. What an :class:`~model.progress.acceptance.Acceptance` of a tree holds is the chance
that the best beam goes on, given that it got so far: its E(k) are the tokens per pass.

Moving the accepted beam's keys and values together, as a tree needs it, is left out: a few
megabytes, and two small kernels a layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.errors import InputError

MAX_BEAMS = 64
"""Widest tree that is priced."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTree:
    """A round's draft as `beams` of equal length, of which `stated_rows` are verified.

    Without `stated_rows` the strategy knows how its runtime packs them.

    Raises:
        InputError: a number of beams outside 1..64.
    """

    beams: int = 1
    stated_rows: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.beams <= MAX_BEAMS:
            raise InputError(
                f"{self.beams} beams",
                "are not a number a round can have",
                f"give a whole number from 1 to {MAX_BEAMS}",
            )

    @property
    def branches(self) -> bool:
        """Whether it is more than a chain."""
        return self.beams > 1

    def rows(self, draft_length: int, *, shares_last_token: bool) -> int:
        """Rows of the verify pass: as stated, else those of beams that share nothing further.

        Raises:
            InputError: stated rows that no tree of these beams has.

        >>> TokenTree(beams=3).rows(4, shares_last_token=True)
        13
        >>> TokenTree(beams=3).rows(4, shares_last_token=False)
        15
        """
        apart = self.beams * (draft_length + 1)
        if self.stated_rows is None:
            return self.beams * draft_length + 1 if shares_last_token else apart
        least = draft_length + self.beams
        if not least <= self.stated_rows <= apart:
            raise InputError(
                f"{self.stated_rows} rows of a tree",
                f"cannot hold {self.beams} beams of {draft_length} draft tokens",
                f"give a whole number from {least} to {apart}",
            )
        return self.stated_rows


CHAIN = TokenTree()
"""One beam."""
