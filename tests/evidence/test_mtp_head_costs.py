"""The order of costs that lablup/mlxcel measured for the MTP head of Qwen3.8-27B.

Sources: github:lablup/mlxcel docs/benchmark_results/mtp-drafter-step-profile-m1ultra-2026-08-17.md
and mtp-drafter-step-profile-m5max-2026-08-17.md (target in 4 bits, head in bf16, 2 draft tokens),
and issue 1204 (M5 Max, the head in 4 bits). Bandwidths are Apple's specifications.

Only the order is held to the model here, on a machine that does nothing but read: no row costs of
these two machines are shipped. What bytes do not explain is stated as its own test.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from model.network.checkpoint import Checkpoint
from model.network.head_target import load_head
from model.network.target import load_target
from model.progress.acceptance import Acceptance
from model.strategies.draft_head import TrainedHead
from tests.model.machines import flat_law, machine


class Published(NamedTuple):
    """Milliseconds of a round, and of the two parts of a draft step that was taken apart."""

    bandwidth_gb_per_s: float
    verify_ms: float
    hook_ms: float
    draft_ms: float
    layers_ms: float
    logits_ms: float


BF16 = {
    "M1 Ultra": Published(800.0, 100.5, 14.1, 10.3, 8.06, 2.33),
    "M5 Max": Published(614.0, 35.24, 10.60, 10.67, 8.29, 2.45),
}
DRAFT_4BIT_MS = 2.70
HOOK_4BIT_MS = 2.74
TARGET = load_target("qwen3.8-27b", "4bit")


def strategy(head_format: str) -> TrainedHead:
    head, design = load_head("qwen3.8-27b-mtp", head_format, TARGET)
    acceptance = Acceptance(by_position=(0.7,))
    return TrainedHead(head=head, design=design, draft_length=2, acceptance=acceptance)


def head(head_format: str) -> Checkpoint:
    return strategy(head_format).head


@pytest.mark.parametrize("chip", BF16)
def test_verifying_costs_most_and_the_hook_as_much_as_the_draft(chip: str) -> None:
    published = BF16[chip]
    here = machine(flat_law(bandwidth=published.bandwidth_gb_per_s * 1e9))
    here_head = strategy("bf16")
    verify_s, hook_s, draft_s = (
        float(cost.device_s)
        for cost in (
            here_head.verify_pass(TARGET, here, 100.0),
            here_head.draft_pass(TARGET, here, 100.0, 1),
            here_head.later_pass(TARGET, here, 100.0, 1),
        )
    )
    assert verify_s > 3 * hook_s
    assert hook_s == pytest.approx(draft_s)
    assert published.verify_ms > 3 * published.hook_ms
    assert published.hook_ms == pytest.approx(published.draft_ms, rel=0.4)


@pytest.mark.parametrize("chip", BF16)
def test_the_layers_of_a_step_cost_more_than_the_borrowed_logits(chip: str) -> None:
    network = head("bf16")
    assert network.total_bytes > network.head_bytes
    assert BF16[chip].layers_ms > BF16[chip].logits_ms


def test_in_4_bits_the_logits_cost_more_than_the_layers_and_a_step_less() -> None:
    narrow, wide = head("4bit"), head("bf16")
    assert narrow.total_bytes < narrow.head_bytes
    assert narrow.weight_bytes_per_token < wide.weight_bytes_per_token
    assert BF16["M5 Max"].draft_ms > DRAFT_4BIT_MS
    assert BF16["M5 Max"].hook_ms > HOOK_4BIT_MS


def test_a_step_in_bf16_is_slower_than_its_bytes_and_one_in_4_bits_is_not() -> None:
    """A quarter of the bandwidth or less in bf16, on both chips; more than half in 4 bits."""
    for published in BF16.values():
        reached_gb_per_s = head("bf16").weight_bytes_per_token / published.draft_ms / 1e6
        assert reached_gb_per_s < 0.25 * published.bandwidth_gb_per_s
    reached_gb_per_s = head("4bit").weight_bytes_per_token / DRAFT_4BIT_MS / 1e6
    assert 0.5 < reached_gb_per_s / BF16["M5 Max"].bandwidth_gb_per_s < 1.0
