"""Working sets: what must be resident, worked by hand, and the refusal beyond the limit."""

from __future__ import annotations

import re

import pytest

from model.errors import InputError
from model.memory import BUFFER_BYTES, check_fits, feasibility
from tests.model.machines import flat_law, machine, small

LAW = flat_law(bandwidth=1e11)
SMALL = small()
WEIGHT_BYTES = SMALL.total_bytes
CACHE_BYTES = 2 * 2 * 2 * 64 * 2
"""Of a token: keys and values of 2 layers with 2 heads of 64 entries in 16 bits."""


def test_weights_caches_and_buffers_add_up() -> None:
    both = feasibility((SMALL, SMALL), machine(LAW), context=100)
    assert both.working_set_bytes == BUFFER_BYTES + 2 * (WEIGHT_BYTES + 100 * CACHE_BYTES)


def test_what_just_fits_is_not_refused() -> None:
    needed = int(BUFFER_BYTES) + 1 + WEIGHT_BYTES + 100 * CACHE_BYTES
    exact = machine(LAW, recommended_working_set_bytes=needed)
    check_fits([SMALL], exact, context=100)
    with pytest.raises(InputError, match="does not fit"):
        check_fits([SMALL], exact, context=101)


def test_a_device_that_states_no_limit_keeps_a_third_for_the_rest() -> None:
    assert feasibility([], machine(LAW, memory_bytes=9), context=0).limit_bytes == 6.0


def test_the_refusal_names_all_that_would_have_to_fit_together() -> None:
    crowded = machine(LAW, recommended_working_set_bytes=10**8)
    line = (
        "small bf16 beside small bf16 on test: does not fit: needs 0.3 GB of 0.1 GB, "
        "0.2 GB too much; give fewer bits, a smaller model or a shorter context"
    )
    with pytest.raises(InputError, match=f"^{re.escape(line)}$"):
        check_fits([SMALL, SMALL], crowded, context=0)
