r"""Host and device as a two-stage pipeline: what waiting for a result costs.

MLX builds the graph of a pass in Python (`build`), then submits it kernel by kernel (`submit`)
while the device already runs its first kernels. It walks the whole graph first, which is the share
w of submitting, and it gathers kernels and commits them together, so that of a pass of c commits
the device sees nothing before the first is submitted, and has the last to do when all is. Passes
that do not depend on a value the host must read are queued behind each other. With H and D the
times at which host and device are free, pass i moves them to

.. math::

   H_i = H_{i-1} + build_i + submit_i, \qquad
   D_i = \max\bigl(\max(H_{i-1} + build_i + b_i\, submit_i, D_{i-1}) + device_i,\;
                   H_i + device_i / c_i\bigr), \qquad b_i = w + (1 - w) / c_i

and a round that reads its tokens ends at :math:`D + sync`. Plain decoding never waits, since
mlx-lm builds the next step before it reads the last one: in the steady state a token takes
max(device, host + read).

Source: mlx-lm 0.32 `generate_step` and `speculative_generate_step`; the latter reads once per
round. The recurrence ignores that a device may starve between two kernels of one pass, and takes
the last commit for a whole one, where half of one is left on average.
"""

from __future__ import annotations

from collections.abc import Iterable

from model.cost.forward import PassCost
from model.machine.overlap import larger
from model.units import Quantity


def pipelined_s(cost: PassCost, read_s: Quantity = 0.0) -> Quantity:
    """Steady time per pass of a loop that stays one pass ahead of its reader."""
    return larger(cost.device_s, cost.host_s + read_s)


def awaited_s(passes: Iterable[PassCost], sync_s: Quantity) -> Quantity:
    """Time of passes queued behind each other from a standing start, read once at the end."""
    host_free: Quantity = 0.0
    device_free: Quantity = 0.0
    for cost in passes:
        begins = host_free + cost.build_s + cost.submit_s * cost.begin_share
        host_free = host_free + cost.host_s
        device_free = larger(
            larger(begins, device_free) + cost.device_s,
            host_free + cost.device_s * cost.commit_share,
        )
    return device_free + sync_s
