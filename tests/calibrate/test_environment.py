from __future__ import annotations

import json
import os
from collections.abc import Mapping

import mlx.core as mx
import pytest

from calibrate import environment as module
from calibrate.environment import Environment, free_bytes, read_environment
from model.errors import InputError


def an_environment(**changes: object) -> Environment:
    fields: dict[str, object] = {
        "device": "metal",
        "chip": "Apple M3",
        "architecture": "applegpu_g15g",
        "memory_bytes": 16 * 2**30,
        "recommended_working_set_bytes": 11_453_246_122,
        "os": "macOS 15.6",
        "python": "3.11.7",
        "mlx": "0.32.4",
        "mlx_lm": "0.32.2",
        "mlx_variables": (("MLX_MAX_OPS_PER_BUFFER", "40"),),
    }
    return Environment(**(fields | changes))  # pyright: ignore[reportArgumentType]


def pretend(monkeypatch: pytest.MonkeyPatch, device: str, info: Mapping[str, object]) -> None:
    monkeypatch.setattr(module, "_device", lambda: device)
    monkeypatch.setattr(mx, "device_info", lambda: dict(info))


def test_this_machine_is_named_in_full() -> None:
    here = read_environment()
    assert here.device in ("metal", "cuda", "cpu")
    assert here.chip
    assert here.architecture
    assert here.memory_bytes > 2**30
    assert here.runtime == f"mlx-{here.mlx}"
    assert here.mlx[0].isdigit()
    assert here.mlx_lm[0].isdigit()


def test_json_returns_the_same_record() -> None:
    for here in (read_environment(), an_environment()):
        assert Environment.from_json(json.loads(json.dumps(here.to_json()))) == here


def test_metal_states_its_working_set(monkeypatch: pytest.MonkeyPatch) -> None:
    info = {
        "device_name": "Apple M3",
        "architecture": "applegpu_g15g",
        "memory_size": 17_179_869_184,
        "max_recommended_working_set_size": 11_453_251_584,
    }
    pretend(monkeypatch, "metal", info)
    here = read_environment()
    assert (here.chip, here.memory_bytes) == ("Apple M3", 17_179_869_184)
    assert here.memory_limit_bytes == here.recommended_working_set_bytes == 11_453_251_584


def test_cuda_has_memory_of_its_own_and_no_working_set(monkeypatch: pytest.MonkeyPatch) -> None:
    info = {"device_name": "NVIDIA H200", "architecture": "sm_90", "total_memory": 150 * 10**9}
    pretend(monkeypatch, "cuda", info)
    here = read_environment()
    assert (here.chip, here.memory_bytes) == ("NVIDIA H200", 150 * 10**9)
    assert here.recommended_working_set_bytes is None
    assert here.memory_limit_bytes == 135 * 10**9


def test_mlx_variables_are_kept_sorted_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLX_SDPA_BLOCKS", "64")
    monkeypatch.setenv("MLX_MAX_OPS_PER_BUFFER", "50")
    monkeypatch.setenv("NOT_MLX_", "1")
    variables = read_environment().mlx_variables
    assert variables == tuple(sorted(variables))
    assert {("MLX_MAX_OPS_PER_BUFFER", "50"), ("MLX_SDPA_BLOCKS", "64")} <= set(variables)
    assert all(name.startswith("MLX_") for name, _ in variables)


def test_processors_are_those_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def three(process: int) -> set[int]:
        assert process == 0  # this one
        return {0, 3, 5}

    monkeypatch.setattr(os, "sched_getaffinity", three, raising=False)
    assert read_environment().processors == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 10)
    assert read_environment().processors == 10


def test_an_older_record_does_not_state_its_processors() -> None:
    older = an_environment(processors=8).to_json()
    del older["processors"]
    assert Environment.from_json(older) == an_environment(processors=0)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("memory_bytes", "16 GB", "memory_bytes: is '16 GB'; give a whole number"),
        ("mlx_variables", [["A"]], "mlx_variables[0]: is ['A']; give a list of 2"),
        ("recommended_working_set_bytes", True, "is True; give a whole number"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object, said: str) -> None:
    fields = {**an_environment().to_json(), field: value}
    with pytest.raises(InputError) as caught:
        Environment.from_json(fields, "profile.json: environment")
    assert str(caught.value).startswith("profile.json: environment: ")
    assert said in str(caught.value)


class TestFreeBytes:
    def test_it_is_never_beyond_the_limit(self) -> None:
        assert 0 <= free_bytes() <= read_environment().memory_limit_bytes

    def test_what_other_programs_hold_on_the_device_is_not_free(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told = {**dict(mx.device_info()), "free_memory": 1000}
        monkeypatch.setattr(mx, "device_info", lambda: told)
        assert free_bytes() == 1000 + mx.get_cache_memory()
