r"""The speedup of a whole answer, where a run's times hold the prefill of its prompt.

With a the time of the prefill over that of decoding the answer plainly, and S the speedup of
decoding alone,

.. math:: S_{whole} = \frac{a + 1}{a + 1 / S}

which is S without a prompt, and nearer to 1 with one: a prefill is no faster for a draft. The
prefill is priced as one pass over the prompt, in an empty cache, by the profile; it is a share of
a few percent, and the error that this passes on is a share of that.
"""

from __future__ import annotations

from calibrate.published.beams import WholeAnswer
from model.cost.forward import forward_pass
from model.machine.profile import Profile
from model.network.checkpoint import Checkpoint
from model.strategies.plain import Plain


def prefill_share(
    answer: WholeAnswer, target: Checkpoint, profile: Profile, *, context: float
) -> float:
    """a: the time of the prompt's pass over that of the answer's plain tokens but the first."""
    machine = profile.machine
    prompt = forward_pass(target, machine, rows=answer.prompt_tokens, context=0.0)
    prompt_s = float(prompt.device_s) + float(machine.host.sync_s)
    token_s = float(Plain().round(target, machine, context).round_s)
    return prompt_s / ((answer.answer_tokens - 1) * token_s)


def with_prefill(speedup: float, share: float) -> float:
    """The speedup of prefill and decoding together.

    >>> with_prefill(2.0, 0.0), with_prefill(2.0, 0.5), with_prefill(1.0, 0.5)
    (2.0, 1.5, 1.0)
    """
    return (share + 1.0) / (share + 1.0 / speedup)
