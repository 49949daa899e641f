"""The price of scores in memory: by alignment, by the score, and none where a kernel attends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.cost.forward import forward_pass
from model.machine.kernels.attention import VectorAttention
from model.machine.machine import Machine
from tests.model.cost.test_unfused_caches import READING, kv_s
from tests.model.machines import FULL, NO_DEVICE, block, flat_law, network


class TestAlignedScores:
    """Where a pass stays at one context, the keys that it meets are a multiple of 8 or are not."""

    RULE = VectorAttention(most_rows=3, head_dims=(64,), fused_beyond=False)
    MEAN = replace(READING, vector_attention=RULE, unfused_attention=flat_law(bandwidth=1e9))
    HERE = replace(MEAN, aligned_attention=flat_law(bandwidth=4e9))

    def kv_s(self, here: Machine, rows: int, context: int, *, stays: bool) -> float:
        keys = context + rows if stays else None
        cost = forward_pass(network(block(FULL)), here, rows=rows, context=context, keys=keys)
        return float(cost.kv_s)

    @pytest.mark.parametrize(("rows", "context"), [(4, 1004), (8, 1000), (5, 4091)])
    def test_a_multiple_of_8_keys_obeys_a_law_of_its_own(self, rows: int, context: int) -> None:
        mean = self.kv_s(self.HERE, rows, context, stays=False)
        assert self.kv_s(self.HERE, rows, context, stays=True) == pytest.approx(mean / 4)

    @pytest.mark.parametrize(("rows", "context"), [(4, 1000), (4, 1001), (5, 1000), (8, 1004)])
    def test_other_keys_obey_the_law_of_the_mean(self, rows: int, context: int) -> None:
        mean = self.kv_s(self.HERE, rows, context, stays=False)
        assert self.kv_s(self.HERE, rows, context, stays=True) == mean

    def test_a_growing_cache_meets_all_alignments(self) -> None:
        for context in (1000, 1004):
            mean = self.kv_s(self.MEAN, 4, context, stays=False)
            assert self.kv_s(self.HERE, 4, context, stays=False) == mean

    def test_without_such_a_law_staying_changes_nothing(self) -> None:
        mean = self.kv_s(self.MEAN, 4, 1004, stays=False)
        assert self.kv_s(self.MEAN, 4, 1004, stays=True) == mean

    def test_rows_that_one_kernel_attends_with_leave_no_scores(self) -> None:
        fused = self.kv_s(READING, 3, 1005, stays=False)
        assert self.kv_s(self.HERE, 3, 1005, stays=True) == fused

    def test_arrays_of_rows_and_contexts_are_aligned_one_by_one(self) -> None:
        rows, contexts = np.array([[3], [4], [8]]), np.array([1000, 1004, 1005])
        together = forward_pass(
            network(block(FULL)), self.HERE, rows=rows, context=contexts, keys=rows + contexts
        )
        alone = [
            [self.kv_s(self.HERE, row, context, stays=True) for context in (1000, 1004, 1005)]
            for row in (3, 4, 8)
        ]
        np.testing.assert_allclose(np.broadcast_to(together.kv_s, (3, 3)), alone, rtol=1e-13)

    def test_scores_go_through_memory_on_top_of_either_law(self) -> None:
        """4 heads, 4 rows (of 3 sequences) over 1,000 keys: 16,000 (48,000) scores of 1 ns."""
        device = replace(NO_DEVICE, score_s=1e-9)
        for stays, rows in ((False, 4), (True, 8)):
            without = self.kv_s(self.HERE, rows, 1000, stays=stays)
            scored = self.kv_s(replace(self.HERE, device=device), rows, 1000, stays=stays)
            assert scored - without == pytest.approx(4 * rows * 1000 * 1e-9)
        batch = [
            kv_s(network(block(FULL)), here, rows=4, context=1000, sequences=3)
            for here in (self.HERE, replace(self.HERE, device=device))
        ]
        assert batch[1] - batch[0] == pytest.approx(3 * 4 * 4 * 1000 * 1e-9)

    def test_one_kernel_keeps_its_scores_to_itself(self) -> None:
        device = replace(NO_DEVICE, score_s=1e-9)
        fused = self.kv_s(self.HERE, 3, 1000, stays=True)
        assert self.kv_s(replace(self.HERE, device=device), 3, 1000, stays=True) == fused
