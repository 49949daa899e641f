"""Architectures: worked numbers of real networks, and what holds for all of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import catalog
from model.network.architecture import Architecture
from model.network.checkpoint import Checkpoint
from model.network.config import read_config
from model.network.mixer import Attention, MixerKind
from model.network.weight_format import weight_format


def shipped(name: str) -> Architecture:
    return read_config(catalog.architecture_config(name), name=name, source=name)


EVERY_NAME = catalog.architecture_names()


def test_llama_3_1_8b_by_hand() -> None:
    llama = shipped("llama-3.1-8b")
    attention = 4096 * 4096 + 2 * 4096 * 1024 + 4096 * 4096  # q, k and v, o
    mlp = 3 * 4096 * 14336
    table = 128256 * 4096
    assert llama.params == 32 * (attention + mlp) + 2 * table + 65 * 4096 == 8_030_261_248
    assert llama.active_params == llama.params
    assert llama.flops_per_row() == 2 * (32 * (attention + mlp) + table)
    assert llama.kv_bytes_per_token() == 32 * 2 * 8 * 128 * 2 == 131_072
    # A thousand tokens: a score and a value for 32 heads of 128, in 32 layers.
    assert llama.flops_per_row(1000) - llama.flops_per_row() == 32 * 2 * 2 * 32 * 128 * 1000
    assert llama.context_limit == 131_072


def test_llama_3_2_1b_reads_its_table_as_its_head() -> None:
    llama = shipped("llama-3.2-1b")
    layer = 2048 * 2048 + 2 * 2048 * 512 + 2048 * 2048 + 3 * 2048 * 8192
    assert llama.tied
    assert llama.head == llama.embedding
    assert llama.params == 16 * layer + 128256 * 2048 + 33 * 2048 == 1_235_814_400
    assert llama.flops_per_row() == 2 * (16 * layer + 128256 * 2048)


def test_qwen3_4b_has_heads_wider_than_its_share() -> None:
    qwen = shipped("qwen3-4b")
    (layer, repeats), *others = qwen.layer_kinds
    assert others == []
    assert repeats == 36
    # 32 heads of 128 are 4096 columns out of a hidden size of 2560, where a share would be 80.
    qkv, out, gate_up, down = layer.siblings
    assert [(each.columns, each.depth) for each in qkv.matrices] == [
        (4096, 2560),
        (1024, 2560),
        (1024, 2560),
    ]
    assert [(each.columns, each.depth) for each in out.matrices] == [(2560, 4096)]
    assert [each.name for each in gate_up.matrices] == ["mlp.gate_proj", "mlp.up_proj"]
    assert [(each.columns, each.depth) for each in down.matrices] == [(2560, 9728)]
    matrices = 2560 * (4096 + 2 * 1024 + 4096) + 3 * 2560 * 9728
    norms = 36 * (2 * 2560 + 2 * 128) + 2560
    assert qwen.params == 36 * matrices + 151936 * 2560 + norms == 4_022_468_096
    assert qwen.kv_bytes_per_token() == 36 * 2 * 8 * 128 * 2 == 147_456


def test_gemma_3_4b_remembers_a_window_in_most_layers() -> None:
    gemma = shipped("gemma-3-4b")
    kinds = [layer.mixer.kind for layer in gemma.layers if layer.mixer is not None]
    assert kinds.count(MixerKind.FULL) == 5
    assert [i for i, kind in enumerate(kinds) if kind is MixerKind.FULL] == [5, 11, 17, 23, 29]
    per_layer = 2 * 4 * 256 * 2
    assert gemma.kv_bytes_per_token() == 34 * per_layer
    assert gemma.kv_bytes(1000) == 34 * 1000 * per_layer
    assert gemma.kv_bytes(8192) == (5 * 8192 + 29 * 1024) * per_layer
    # Attention, too, stops growing in a layer that slides: 8 heads of 256, two multiplications.
    grown = gemma.flops_per_row(8192) - gemma.flops_per_row(4096)
    assert grown == 5 * 4096 * 2 * 2 * 8 * 256


def test_qwen3_30b_a3b_by_hand() -> None:
    qwen = shipped("qwen3-30b-a3b")
    attention = 2048 * (4096 + 2 * 512 + 4096)
    expert = 3 * 2048 * 768
    router = 128 * 2048
    table = 151936 * 2048
    norms = 48 * (2 * 2048 + 2 * 128) + 2048
    layer = attention + router + 128 * expert
    assert qwen.params == 48 * layer + 2 * table + norms == 30_532_122_624
    assert qwen.active_params == qwen.params - 48 * 120 * expert == 3_353_032_704
    assert qwen.flops_per_row() == 2 * (48 * (attention + router + 8 * expert) + table)


def test_mixtral_8x7b_is_neither_8_nor_7_times_anything() -> None:
    mixtral = shipped("mixtral-8x7b")
    assert (mixtral.params, mixtral.active_params) == (46_702_792_704, 12_879_925_248)


def test_deepseek_v2_lite_by_hand() -> None:
    deepseek = shipped("deepseek-v2-lite")
    # 16 query heads of 128 + 64, a latent of 512 and a rotary key of 64, what unfolds to a key and
    # a value of 128 for each head, and the output.
    attention = 2048 * 16 * 192 + 2048 * 576 + 512 * 16 * 256 + 16 * 128 * 2048
    dense = 3 * 2048 * 10944
    expert = 3 * 2048 * 1408
    router = 64 * 2048
    table = 102400 * 2048
    norms = 27 * (2 * 2048 + 512) + 2048
    sparse = router + (64 + 2) * expert
    weights = 27 * attention + dense + 26 * sparse + 2 * table
    assert deepseek.params == weights + norms == 15_706_484_224
    assert deepseek.active_params == deepseek.params - 26 * 58 * expert == 2_661_150_208
    multiplied = 27 * attention + dense + 26 * (router + 8 * expert) + table
    assert deepseek.flops_per_row() == 2 * multiplied
    # A token needs 576 numbers in each layer; mlx-lm keeps 16 keys of 192 and values of 128.
    assert deepseek.kv_bytes_per_token() == 27 * 576 * 2 == 31_104
    assert deepseek.kv_bytes(1000) == 1000 * 27 * 16 * (192 + 128) * 2 == 276_480_000
    grown = deepseek.flops_per_row(1000) - deepseek.flops_per_row()
    assert grown == 2 * 1000 * 27 * 16 * (192 + 128)
    # In 4 bits 64 weights take 36 bytes; the routers and norms stay in 16.
    checkpoint = Checkpoint(architecture=deepseek, weight_format=weight_format("4bit"))
    packed = (weights - 26 * router) * 36 // 64
    assert checkpoint.total_bytes == packed + 2 * (26 * router + norms) == 8_839_977_984
    unread = 26 * 58 * expert + table
    assert checkpoint.weight_bytes_per_token == checkpoint.total_bytes - unread * 36 // 64
    assert deepseek.can_rewind


def test_deepseek_v3_keeps_a_latent_for_128_heads() -> None:
    deepseek = shipped("deepseek-v3")
    # 61 layers of 576 numbers; plain heads would keep 128 * (192 + 128), 71 times as much.
    assert deepseek.kv_bytes_per_token() == 61 * 576 * 2 == 70_272
    assert deepseek.kv_bytes(1000) == 70_272_000
    # One row scores 512 + 64 numbers of each token and sums 512, for each head.
    grown = deepseek.flops_per_row(1000) - deepseek.flops_per_row()
    assert grown == 2 * 1000 * 61 * 128 * (512 + 64 + 512)


def test_qwen3_next_80b_a3b_by_hand() -> None:
    qwen = shipped("qwen3-next-80b-a3b")
    # 16 queries of 256, each beside a gate; 2 keys and values.
    attention = 2048 * 2 * 16 * 256 + 2 * 2048 * 2 * 256 + 16 * 256 * 2048
    # 16 keys and queries of 128; 32 values of 128 with gates; two numbers for each value head.
    delta = 2048 * (2 * 16 * 128 + 2 * 32 * 128) + 2048 * 2 * 32 + 32 * 128 * 2048
    channels = 2 * 16 * 128 + 32 * 128
    vectors = 36 * (4 * channels + 2 * 32 + 128) + 12 * 2 * 256 + 48 * 2 * 2048 + 2048
    expert = 3 * 2048 * 512
    router, gate, table = 512 * 2048, 2048, 151936 * 2048
    mixers = 12 * attention + 36 * delta
    sparse = 48 * (router + gate + 513 * expert)
    assert qwen.params == mixers + sparse + 2 * table + vectors == 79_674_391_296
    assert qwen.active_params == qwen.params - 48 * 502 * expert == 3_874_929_408
    # The state is decayed, asked, changed and asked again; the convolution has four taps.
    recurrent = 36 * (4 * 32 * 128 * 128 + 4 * channels)
    multiplied = mixers + 48 * (router + gate + 11 * expert) + table + recurrent
    assert qwen.flops_per_row() == 2 * multiplied
    grown = qwen.flops_per_row(1000) - qwen.flops_per_row()
    assert grown == 2 * 1000 * 12 * 16 * (256 + 256)
    # 32 states of 128 x 128 in 32 bits and three inputs of the convolution in 16: 77 MB.
    state = 36 * (32 * 128 * 128 * 4 + 3 * channels * 2)
    assert qwen.kv_bytes(0) == state == 77_266_944
    assert qwen.kv_bytes_per_token() == 12 * 2 * 2 * 256 * 2 == 24_576
    assert qwen.kv_bytes(1000) == state + 24_576_000
    assert not qwen.can_rewind


def test_nemotron_3_nano_by_hand() -> None:
    nemotron = shipped("nemotron-3-nano-30b-a3b")
    # 64 heads of 64 with states of 128, in 8 groups; 23 of 52 layers.
    inner, channels = 64 * 64, 64 * 64 + 2 * 8 * 128
    mamba = 2688 * (inner + channels + 64) + inner * 2688
    attention = 2688 * (32 + 2 * 2) * 128 + 32 * 128 * 2688
    expert, shared, router = 2 * 2688 * 1856, 2 * 2688 * 3712, 128 * 2688
    table = 131072 * 2688
    vectors = 23 * (channels * (4 + 1) + 3 * 64 + inner) + 23 * 128 + 53 * 2688
    weights = 23 * mamba + 6 * attention + 23 * (router + shared + 128 * expert) + 2 * table
    assert nemotron.params == weights + vectors == 31_577_940_288
    assert nemotron.kv_bytes(0) == 23 * (64 * 64 * 128 * 4 + 3 * channels * 2)
    assert nemotron.kv_bytes_per_token() == 6 * 2 * 2 * 128 * 2
    # Each layer is half a block: 29 mixers and 23 mixtures.
    assert nemotron.blocks == 26
    recurrent = 23 * (3 * 64 * 64 * 128 + 4 * channels)
    read = 23 * mamba + 6 * attention + 23 * (router + shared + 6 * expert) + table
    assert nemotron.flops_per_row() == 2 * (read + recurrent)


def test_lfm2_remembers_two_inputs_of_most_layers() -> None:
    lfm2 = shipped("lfm2.5-1.2b")
    assert lfm2.kv_bytes(0) == 10 * 2 * 2048 * 2
    assert lfm2.kv_bytes_per_token() == 6 * 2 * 8 * 64 * 2 == 12_288
    # Two thirds of 12288 are 8192, a multiple of 256.
    gate_up, _ = lfm2.layers[0].mlp_siblings
    assert [(each.name, each.columns) for each in gate_up.matrices] == [
        ("feed_forward.w1", 8192),
        ("feed_forward.w3", 8192),
    ]


def test_gpt_oss_alternates_and_starts_with_a_window() -> None:
    mixers = [layer.mixer for layer in shipped("gpt-oss-20b").layers]
    windows = [mixer.window for mixer in mixers if isinstance(mixer, Attention)]
    assert windows == [128, None] * 12


@pytest.mark.parametrize("name", EVERY_NAME)
def test_every_count_is_the_one_that_was_checked(name: str) -> None:
    config = catalog.architecture_config(name)
    architecture = shipped(name)
    assert architecture.params == config["_total_params"]
    assert architecture.active_params == config.get("_active_params", architecture.params)


@pytest.mark.parametrize("name", EVERY_NAME)
def test_layer_kinds_are_all_layers(name: str) -> None:
    architecture = shipped(name)
    assert sum(repeats for _, repeats in architecture.layer_kinds) == len(architecture.layers)
    assert len(architecture.layer_kinds) <= 4
    assert {layer for layer, _ in architecture.layer_kinds} == set(architecture.layers)


@pytest.mark.parametrize("name", EVERY_NAME)
def test_a_layer_names_each_matrix_once(name: str) -> None:
    for layer, _ in shipped(name).layer_kinds:
        names = [matrix.name for matrix in layer.matrices]
        assert len(set(names)) == len(names)


def test_equal_architectures_are_one_key() -> None:
    one, other = shipped("llama-3.1-405b"), shipped("llama-3.1-405b")
    assert one is not other
    assert {one: 1}[other] == 1
    assert one != shipped("llama-3.1-70b")


contexts = st.integers(0, 200_000)


@st.composite
def attentions(draw: st.DrawFn) -> Attention:
    window = draw(st.none() | st.integers(1, 8192))
    kv_heads = draw(st.integers(1, 16))
    return Attention(
        query_heads=kv_heads * draw(st.integers(1, 8)),
        kv_heads=kv_heads,
        head_dim=draw(st.sampled_from([64, 128, 256])),
        window=window,
    )


@given(attentions(), contexts, contexts)
def test_more_context_is_never_less_to_read(attention: Attention, one: int, other: int) -> None:
    shorter, longer = sorted((one, other))
    assert attention.cached_tokens(shorter) <= attention.cached_tokens(longer)
    assert attention.cached_tokens(longer) <= longer


@given(attentions(), st.lists(contexts, min_size=1, max_size=5))
def test_an_array_of_contexts_is_each_of_them(attention: Attention, several: list[int]) -> None:
    swept = attention.macs_per_row(np.array(several, dtype=float))
    assert list(np.atleast_1d(swept)) == [attention.macs_per_row(each) for each in several]


def test_a_network_broadcasts_over_contexts() -> None:
    gemma = shipped("gemma-3-4b")
    several = np.array([0.0, 1000.0, 8192.0])
    assert list(np.atleast_1d(gemma.kv_bytes(several))) == [gemma.kv_bytes(c) for c in several]
    assert list(np.atleast_1d(gemma.flops_per_row(several))) == [
        gemma.flops_per_row(float(each)) for each in several
    ]


def test_scalar_counts_are_plain_numbers() -> None:
    gemma = shipped("gemma-3-4b")
    assert json.dumps([gemma.kv_bytes(100), gemma.flops_per_row(100), gemma.kv_bytes_per_token()])
