"""Quantizations as they are written: bits and groups, kinds of files, means and sizes."""

from __future__ import annotations

import pytest

from calibrate.published.formats import is_mean, named_format, of_size, stored_as
from calibrate.published.names import target_of
from calibrate.published.refusal import Refusal
from tests.calibrate.published.published_run import PLAIN, published

PARAMS = 8_000_000_000


@pytest.mark.parametrize(
    ("kernels", "quant", "stored"),
    [
        ("mlx", "MLX 4bit", "4bit"),
        ("mlx", "4-bit gs32", "4bit-g32"),
        ("mlx", "6bit (group size 64)", "6bit"),
        ("mlx", "8 bits, group size 128", "8bit-g128"),
        ("mlx", "8bit (group size 128)", "8bit-g128"),
        ("mlx", "4bit (group size 48)", None),
        ("mlx", "5bit-g32", "5bit-g32"),
        ("mlx", "4bit (mlx-community/Anything-4bit)", "4bit"),
        ("mlx", "4bit (AXQ mixed)", None),
        ("mlx", "4-bit MLP / 8-bit attention", None),
        ("mlx", "9bit", None),
        ("mlx", "AWQ INT4", None),
        ("mlx", "", None),
        ("mlx", "BFloat16", None),
        ("mlx", "mixed 3.5bpw", "gguf-3.50"),
        ("mlx", "100 bpw", None),
        ("llama.cpp", "q4_k_m", "gguf-q4_k_m"),
        ("llama.cpp", "GGUF Q4_K_M", "gguf-q4_k_m"),
        ("llama.cpp", "Q6_K (imatrix)", "gguf-q6_k"),
        ("llama.cpp", "Q8", "gguf-q8_0"),
        ("llama.cpp", "Q4", None),
        ("llama.cpp", "4bit", None),
        ("llama.cpp", "UD-Q4_K_XL", None),
        ("llama.cpp", "IQ1_S, 1.75 bpw", "gguf-1.75"),
    ],
)
def test_a_quantization_is_read_or_it_is_not(kernels: str, quant: str, stored: str | None) -> None:
    found = named_format(kernels, quant)
    assert (None if found is None else found.layers.name) == stored


def test_a_stated_size_tells_the_mean_of_a_mixture() -> None:
    run = published(PLAIN, quant="4bit (AXQ mixed)", model_bytes_gb="4.6")
    found = stored_as(run, PARAMS)
    assert not isinstance(found, Refusal)
    assert found.layers.bits_per_weight == pytest.approx(4.6, abs=1 / 64)
    assert is_mean(found.layers)
    assert isinstance(stored_as(run, None), Refusal)
    # 8 bits and more of it unquantized is not a fit for integers.
    sixteen = of_size(published(PLAIN, quant="mostly bf16", model_bytes_gb="16"), PARAMS)
    assert sixteen is not None
    assert sixteen.layers.name == "bf16"


@pytest.mark.parametrize("gigabytes", ["0.5", "40"])
def test_a_size_of_something_else_tells_nothing(gigabytes: str) -> None:
    run = published(PLAIN, quant="AWQ INT4", model_bytes_gb=gigabytes)
    assert isinstance(stored_as(run, PARAMS), Refusal)


def test_a_format_that_is_not_named_is_refused_whatever_its_size() -> None:
    assert isinstance(stored_as(published(PLAIN, quant="", model_bytes_gb="4.5"), PARAMS), Refusal)


def test_experts_may_be_counted_beside_a_format() -> None:
    moe = {"target_model": "Qwen3-30B-A3B"}
    full, four = (
        target_of(published(PLAIN | moe, quant=quant)) for quant in ("3bit", "3bit top_k=4")
    )
    assert not isinstance(full, Refusal)
    assert not isinstance(four, Refusal)
    assert full.total_bytes == four.total_bytes
    assert full.weight_bytes_per_token > 1.3 * four.weight_bytes_per_token
