"""From experts that were counted to the share that the cost model takes, and to a prediction."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.comparison import predict_run
from calibrate.run_record import Run
from calibrate.shared_choice import as_chosen, share_of
from model.cost.moe import distinct_by_chance, unique_experts
from model.machine.profile_store import named_profile
from model.network.target import load_target
from tests.calibrate.test_comparison import PLAIN
from tests.model.machines import experts_of

BATCH = replace(PLAIN, target="lfm2-8b-a1b", strategy="batch", batch=8)


@given(
    st.integers(min_value=2, max_value=256),
    st.integers(min_value=1, max_value=255),
    st.integers(min_value=2, max_value=128),
    st.floats(min_value=0.0, max_value=1.0),
)
def test_the_share_reads_as_many_experts_as_were_counted(
    num_experts: int, top_k: int, rows: int, part: float
) -> None:
    top_k = min(top_k, num_experts - 1)
    experts = experts_of(num_experts=num_experts, top_k=top_k)
    most = float(distinct_by_chance(num_experts, top_k, rows))
    counted = top_k + part * (most - top_k)
    share = share_of(experts, counted, rows)
    chosen = replace(experts, shared_choice=share)
    assert float(unique_experts(chosen, rows)) == pytest.approx(counted, rel=1e-3)


def test_more_than_chance_is_chance_and_no_more_than_one_row_s_is_all_in_common() -> None:
    experts = experts_of(num_experts=64, top_k=8)
    assert share_of(experts, 40.0, rows=4) == 8 / 64
    assert share_of(experts, 8.0, rows=4) == 1.0
    assert share_of(experts, 8.0, rows=1) == 8 / 64


def test_a_run_whose_rows_read_fewer_experts_is_predicted_faster() -> None:
    m3 = named_profile("m3-10core-16gb")

    def tokens_per_s(run: Run) -> float:
        return predict_run(run, m3).tokens_per_s or 0.0

    nobody, many, few = (replace(BATCH, distinct_experts=count) for count in (0.0, 20.0, 6.0))
    assert tokens_per_s(few) > 1.2 * tokens_per_s(many)
    # Unless counted, sequences of a batch have 0.5 as the shape of their law.
    assert tokens_per_s(few) > tokens_per_s(nobody)


def test_a_network_without_experts_stays_as_it_is() -> None:
    dense = load_target("llama-3.1-8b", "4bit")
    assert as_chosen(dense, replace(BATCH, target="llama-3.1-8b", distinct_experts=9.0)) is dense
