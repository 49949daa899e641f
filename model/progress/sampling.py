r"""Acceptance at one position from the two next-token distributions, by the rule that accepts.

With p the target's distribution, q the draft's, and the draft token drawn from q:

* rejection sampling accepts with probability min(1, p/q), in all :math:`\sum \min(p, q)`
  (Leviathan et al., 2023, arXiv 2211.17192; Chen et al., 2023, arXiv 2302.01318);
* exact match draws the target's own token too and accepts if they are equal, in all
  :math:`\sum p q`; mlx-lm does this at a temperature above 0;
* greedy drafts and accepts the most probable token, so that a position is right or wrong.

Exact match pays for the target's own randomness: a draft that is the target itself is accepted
:math:`\sum p^2` of the time, its *collision probability*. No draft does better than always naming
the likeliest token, max p, so under exact match a draft should not be sampled at all.

Distributions are arrays of probabilities over the vocabulary on the last axis; other axes
broadcast. An acceptance over a text is the mean over its positions.
"""

from __future__ import annotations

import numpy as np

from model.errors import InputError
from model.units import Array, Quantity

TOLERANCE = 1e-6
"""What the probabilities of a distribution may miss 1 by: sums of float32."""


def next_token_probabilities(logits: Array, temperature: float) -> Array:
    """The distribution of logits at a temperature; at 0 all of it is on the first largest.

    Raises:
        InputError: a temperature below 0 or not finite.

    >>> next_token_probabilities(np.log([0.8, 0.2]), 0.5).round(4).tolist()
    [0.9412, 0.0588]
    """
    if not 0.0 <= temperature < np.inf:
        raise InputError(f"temperature {temperature:g}", "is not one", "give 0 or more")
    if temperature == 0.0:
        return np.eye(logits.shape[-1])[np.argmax(logits, axis=-1)]
    # The largest is taken off before the division: a small temperature must not overflow.
    scaled = (logits - np.max(logits, axis=-1, keepdims=True)) / temperature
    weights = np.exp(scaled)
    return weights / np.sum(weights, axis=-1, keepdims=True)


def rejection_acceptance(target: Array, draft: Array) -> Quantity:
    """Sum of min(p, q): what rejection sampling accepts, 1 less their total variation distance.

    Raises:
        InputError: not a distribution, or over different vocabularies.

    >>> rejection_acceptance(np.array([0.5, 0.5]), np.array([0.8, 0.2]))
    0.7
    """
    _check(target, draft)
    return _scalar(np.sum(np.minimum(target, draft), axis=-1))


def exact_match_acceptance(target: Array, draft: Array) -> Quantity:
    """Sum of p q: what exact match of two sampled tokens accepts.

    At most the square root of the two collision probabilities' product (Cauchy-Schwarz), and at
    most the largest p.

    Raises:
        InputError: not a distribution, or over different vocabularies.

    >>> exact_match_acceptance(np.array([0.5, 0.5]), np.array([0.8, 0.2]))
    0.5
    """
    _check(target, draft)
    return _scalar(np.sum(target * draft, axis=-1))


def greedy_acceptance(target: Array, draft: Array) -> Quantity:
    """1 where both distributions have the same most probable token, else 0.

    Raises:
        InputError: not a distribution, or over different vocabularies.
    """
    _check(target, draft)
    same = np.argmax(target, axis=-1) == np.argmax(draft, axis=-1)
    return _scalar(same.astype(np.float64))


def collision_probability(target: Array) -> Quantity:
    """Sum of p^2: what exact match accepts of a draft that is the target itself.

    Raises:
        InputError: not a distribution.

    >>> collision_probability(np.array([0.5, 0.25, 0.25]))
    0.375
    """
    return exact_match_acceptance(target, target)


def exact_match_ceiling(target: Array) -> Quantity:
    """Max p: what exact match accepts of the best draft there can be, the likeliest token itself.

    Raises:
        InputError: not a distribution.
    """
    _check(target, target)
    return _scalar(np.max(target, axis=-1))


def exact_match_from_rejection(acceptance: Quantity, collision: Quantity) -> Quantity:
    """Exact-match acceptance from the greedy or rejection one, under an assumption.

    The draft is assumed to be a mixture: the target's own distribution with weight `acceptance`,
    and tokens that the target never takes with the rest. Then sum min(p, q) is `acceptance` and
    sum p q is acceptance x sum p^2. It also holds if the draft is the target at that share of the
    positions and wrong at the others, independently of how sure the target is, which is how a
    greedy acceptance fits in. Drafts are right more often where the target is surer, and may be
    sharper than it, so real exact-match acceptance tends to lie above this number.

    Raises:
        InputError: an acceptance or a collision probability outside [0, 1].

    >>> round(exact_match_from_rejection(0.9, 0.5), 6)
    0.45
    """
    for name, value in (("acceptance", acceptance), ("collision probability", collision)):
        values = np.asarray(value, dtype=float)
        if not np.all((values >= 0.0) & (values <= 1.0)):
            raise InputError(f"{name} {value}", "is not a probability", "give numbers in [0, 1]")
    return acceptance * collision


def _check(target: Array, draft: Array) -> None:
    if target.shape[-1:] != draft.shape[-1:]:
        value = f"{target.shape[-1:]} and {draft.shape[-1:]} tokens"
        raise InputError(value, "are different vocabularies", "give distributions over one")
    for probabilities in (target, draft):
        misses = np.abs(np.sum(probabilities, axis=-1) - 1.0)
        if not np.all(misses <= TOLERANCE) or np.any(probabilities < 0.0):
            total = float(np.ravel(np.sum(probabilities, axis=-1))[0])
            right = "give probabilities that are 0 or more and sum to 1"
            raise InputError(f"probabilities that sum to {total:g}", "are no distribution", right)


def _scalar(values: Array) -> Quantity:
    return float(values) if values.ndim == 0 else values
