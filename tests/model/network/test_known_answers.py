"""Bytes in 4 bits, cache bytes of a token and operations of a row, by hand for real networks.

Affine 4 bits in groups of 64 are 4.5 bits of each weight; norms and biases have 16. A row counts
two operations for each weight that it multiplies with, and none for a table it gathers from. Of
Llama 3.1 8B, the other tests of architectures and checkpoints have all three already.
"""

from __future__ import annotations

from model import catalog
from model.network.checkpoint import Checkpoint
from model.network.config import read_config
from model.network.weight_format import weight_format


def in_4_bits(name: str) -> Checkpoint:
    architecture = read_config(catalog.architecture_config(name), name=name, source=name)
    return Checkpoint(architecture=architecture, weight_format=weight_format("4bit"))


def test_llada2_mini() -> None:
    # 20 layers of 2048, 16 query and 4 key heads of 128. The first MLP is dense and 5120 wide; the
    # others have 256 experts of 512, of which a token takes 8, and a shared one of 512.
    attention = 2048 * (16 + 2 * 4) * 128 + (16 * 128) * 2048
    dense = 3 * 2048 * 5120
    expert = 3 * 2048 * 512
    table = 157_184 * 2048
    # The router is a bare array that MLX leaves in 16 bits, with a bias for each expert.
    routers = 19 * 256 * (2048 + 1)
    norms = 20 * (2 * 2048 + 2 * 128) + 2048
    every_row = 20 * attention + dense + 19 * expert + table
    llada = in_4_bits("llada2.0-mini")
    network = llada.architecture
    assert network.params == every_row + 19 * 256 * expert + table + routers + norms
    assert network.params == 16_255_643_392
    unread = 19 * 248 * expert
    assert network.active_params == 16_255_643_392 - unread == 1_432_973_056
    quantized = every_row + 19 * 8 * expert
    read = quantized * 4.5 / 8 + (routers + norms) * 2
    assert llada.weight_bytes_per_token == read
    assert llada.total_bytes == read + (unread + table) * 4.5 / 8 == 9_158_254_080
    # 20 layers, key and value, 4 heads of 128, 2 bytes.
    assert llada.kv_bytes_per_token == 20 * 2 * 4 * 128 * 2 == 40_960
    assert network.flops_per_row() == 2 * (quantized + 19 * 256 * 2048) == 2_221_932_544
    # Each row of a canvas scores and sums the values of every token: 16 heads of 128.
    assert network.flops_per_row(1000) - network.flops_per_row() == 20 * 4 * 16 * 128 * 1000


def test_mixtral_8x7b() -> None:
    # 32 layers of 4096, 32 query and 8 key heads of 128, two of eight experts of 14336.
    attention = 4096 * (32 + 2 * 8) * 128 + 4096 * 4096
    expert = 3 * 4096 * 14336
    router = 8 * 4096
    table = 32_000 * 4096
    norms = 65 * 4096
    mixtral = in_4_bits("mixtral-8x7b")
    read = 32 * (attention + router + 2 * expert) + table
    everything = 32 * (attention + router + 8 * expert) + 2 * table
    assert mixtral.weight_bytes_per_token == read * 4.5 / 8 + norms * 2 == 7_171_612_672
    assert mixtral.total_bytes == everything * 4.5 / 8 + norms * 2 == 26_270_703_616
    assert mixtral.kv_bytes_per_token == 32 * 2 * 8 * 128 * 2 == 131_072
    assert mixtral.architecture.flops_per_row() == 2 * read == 25_497_174_016


def test_gpt_oss_20b() -> None:
    # 24 layers of 2880, 64 query and 8 key heads of 64, four of 32 experts of 2880.
    columns = (64 + 2 * 8) * 64
    attention = 2880 * columns + (64 * 64) * 2880
    expert = 3 * 2880 * 2880
    router = 32 * 2880
    table = 201_088 * 2880
    # Everything has a bias; 64 sinks and two norms are all else.
    layer_biases = columns + 2880 + 32
    expert_biases = 3 * 2880
    vectors = 24 * (2 * 2880 + 64) + 2880
    oss = in_4_bits("gpt-oss-20b")

    def stored(experts: int, tables: int) -> float:
        in_16_bits = 24 * (layer_biases + experts * expert_biases) + vectors
        quantized = 24 * (attention + experts * expert) + tables * table
        # The router is kept in 8 bits: 8.5 of each weight.
        return quantized * 4.5 / 8 + 24 * router * 8.5 / 8 + in_16_bits * 2

    assert oss.weight_bytes_per_token == stored(4, 1) == 2_032_453_248
    assert oss.total_bytes == stored(32, 2) == 11_775_677_568
    assert oss.kv_bytes_per_token == 24 * 2 * 8 * 64 * 2 == 49_152
    # Half of the layers keep 128 tokens.
    assert oss.kv_cache_bytes(1128) == 12 * (1128 + 128) * 2 * 8 * 64 * 2
    multiplied = 24 * (attention + router + 4 * expert) + table
    assert oss.architecture.flops_per_row() == 2 * multiplied == 7_214_284_800


def test_qwen3_30b_a3b() -> None:
    # Its bytes and operations are in the tests of checkpoints and architectures.
    assert in_4_bits("qwen3-30b-a3b").kv_bytes_per_token == 48 * 2 * 4 * 128 * 2 == 98_304


def test_gemma_3_4b() -> None:
    # 34 layers of 2560, 8 query and 4 key heads of 256, an MLP of 10240; the table is the head.
    layer = 2560 * (8 + 2 * 4) * 256 + (8 * 256) * 2560 + 3 * 2560 * 10_240
    norms = 34 * (4 * 2560 + 2 * 256) + 2560
    matrices = 34 * layer + 262_208 * 2560
    gemma = in_4_bits("gemma-3-4b")
    assert gemma.total_bytes == gemma.weight_bytes_per_token == matrices * 4.5 / 8 + norms * 2
    assert gemma.total_bytes == 2_183_177_216
    assert gemma.kv_bytes_per_token == 34 * 2 * 4 * 256 * 2 == 139_264
    assert gemma.architecture.flops_per_row() == 2 * matrices == 7_759_790_080


def test_qwen3_4b() -> None:
    # 36 layers of 2560, 32 query and 8 key heads of 128, an MLP of 9728; the table is the head.
    layer = 2560 * (32 + 2 * 8) * 128 + (32 * 128) * 2560 + 3 * 2560 * 9728
    norms = 36 * (2 * 2560 + 2 * 128) + 2560
    matrices = 36 * layer + 151_936 * 2560
    qwen = in_4_bits("qwen3-4b")
    assert qwen.total_bytes == qwen.weight_bytes_per_token == matrices * 4.5 / 8 + norms * 2
    assert qwen.total_bytes == 2_262_920_192
    assert qwen.architecture.flops_per_row() == 2 * matrices == 8_044_544_000


def test_llama_3_2_1b() -> None:
    # Its bytes and operations are in the tests of checkpoints and architectures.
    assert in_4_bits("llama-3.2-1b").kv_bytes_per_token == 16 * 2 * 8 * 64 * 2 == 32_768
