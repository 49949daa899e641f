"""The dispatch tables against what the sources of MLX say, at every limit."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from model.catalog import kernel_data
from model.machine.kernels.attention import is_unfused, library_attention, vector_attention
from model.machine.kernels.commits import kernels_per_commit
from model.machine.kernels.dispatch import Dispatch, dispatch_of
from model.machine.kernels.gpu import Gpu
from model.machine.kernels.grouping import grouping
from model.machine.kernels.releases import known_releases, named_release, runtime_name
from model.machine.kernels.tables import BACK_ENDS

SMALL, MEDIUM, LARGE = (2048, 2048), (4096, 4096), (4096, 14336)


def gpu(architecture: str) -> Gpu:
    """The GPU of an architecture's name, as g15s; its cores do not matter here."""
    return Gpu(generation=int(architecture[1:3]), size=architecture[3], cores=10)


def uses(
    architecture: str, runtime: str, family: str, matrix: tuple[int, int]
) -> list[tuple[str, int]]:
    dispatch = dispatch_of("metal", runtime, gpu(architecture))
    assert dispatch is not None
    depth, columns = matrix
    return [
        (use.kernel.name, use.first_row)
        for use in dispatch.kernels(family, depth=depth, columns=columns)
    ]


@pytest.mark.parametrize(
    ("architectures", "runtimes", "limits"),
    [
        # get_qmv_batch_limit at v0.31.2, v0.32.0 and v0.32.1
        ("g13g g13s g14g g14s", "0.24.2 0.31.2 0.32.0 0.32.1 0.32.4", (14, 10, 6)),
        ("g13d g14d g15d g16d g17d", "0.24.2 0.31.2 0.32.0 0.32.1 0.32.4", (32, 18, 12)),
        ("g15g g15s g16g g16s g17g g17s", "0.31.2 0.32.0", (18, 12, 10)),
        ("g15g g15s g16g g16s", "0.32.1 0.32.4", (13, 15, 13)),
        ("g17g g17s", "0.32.1 0.32.4", (33, 25, 13)),
    ],
)
def test_limits_of_the_matrix_vector_kernels(
    architectures: str, runtimes: str, limits: tuple[int, int, int]
) -> None:
    for architecture, runtime in product(architectures.split(), runtimes.split()):
        dispatch = dispatch_of("metal", f"mlx-{runtime}", gpu(architecture))
        assert dispatch is not None
        assert dispatch.limits is not None
        found = [dispatch.limits.of(depth=d, columns=c) for d, c in (SMALL, MEDIUM, LARGE)]
        assert tuple(found) == limits, (architecture, runtime)


@pytest.mark.parametrize(
    ("depth", "columns", "limit"),
    [(2048, 2049, 15), (2049, 2048, 15), (4096, 4097, 13), (4097, 64, 13), (64, 2048, 13)],
)
def test_a_matrix_is_as_large_as_its_longer_side(depth: int, columns: int, limit: int) -> None:
    dispatch = dispatch_of("metal", "mlx-0.32", gpu("g15g"))
    assert dispatch is not None
    assert dispatch.limits is not None
    assert dispatch.limits.of(depth=depth, columns=columns) == limit


@pytest.mark.parametrize(
    ("architecture", "runtime", "family", "matrix", "expected"),
    [
        # the article's regime: one walk a row until the product is tiled
        ("g15g", "mlx-0.31.2", "affine", LARGE, [("qmv", 1), ("qmm", 10)]),
        ("g15g", "mlx-0.31.2", "affine", MEDIUM, [("qmv", 1), ("qmm_splitk", 12)]),
        ("g15g", "mlx-0.31.1", "affine", MEDIUM, [("qmv", 1), ("qmm", 12)]),
        ("g15g", "mlx-0.32.0", "affine", LARGE, [("qmv", 1), ("qmv_wide", 2), ("qmm", 10)]),
        ("g15g", "mlx-0.32.4", "affine", LARGE, [("qmv", 1), ("qmv_wide", 2), ("qmm", 13)]),
        ("g16s", "mlx-0.32.4", "fp", SMALL, [("qmv", 1), ("qmv_wide", 2), ("qmm_splitk", 13)]),
        # M1 and M2: the wide kernel for fp formats only
        ("g14d", "mlx-0.32.4", "affine", LARGE, [("qmv", 1), ("qmm", 12)]),
        ("g14d", "mlx-0.32.4", "fp", LARGE, [("qmv", 1), ("qmv_wide", 2), ("qmm", 12)]),
        ("g13g", "mlx-0.31.2", "fp", LARGE, [("qmv", 1), ("qmm", 6)]),
        # M5: matrix units, but not where K is split
        ("g17s", "mlx-0.32.1", "affine", LARGE, [("qmv", 1), ("qmv_wide", 2), ("qmm_nax_64", 13)]),
        (
            "g17s",
            "mlx-0.32.2",
            "affine",
            LARGE,
            [("qmv", 1), ("qmv_wide", 2), ("qmm_nax_32", 13), ("qmm_nax_64", 33)],
        ),
        (
            "g17g",
            "mlx-0.32.1",
            "affine",
            (14336, 8192),
            [("qmv", 1), ("qmv_wide", 2), ("qmm_splitk", 13)],
        ),
        # 16-bit weights
        ("g15g", "mlx-0.31.2", "float", LARGE, [("gemv", 1), ("steel", 2)]),
        ("g15g", "mlx-0.32.0", "float", LARGE, [("gemv", 1), ("steel", 2)]),
        ("g15g", "mlx-0.32.1", "float", LARGE, [("gemv", 1), ("gemv_wide", 2), ("steel", 16)]),
        ("g14g", "mlx-0.32.4", "float", LARGE, [("gemv", 1), ("steel", 2)]),
    ],
)
def test_kernels_by_rows(
    architecture: str,
    runtime: str,
    family: str,
    matrix: tuple[int, int],
    expected: list[tuple[str, int]],
) -> None:
    assert uses(architecture, runtime, family, matrix) == expected


def test_every_release_gpu_and_family_has_kernels_from_one_row_without_gaps() -> None:
    sizes = (SMALL, MEDIUM, LARGE, (8192, 131_072))
    for release, generation, size in product(known_releases(), range(13, 18), "gsd"):
        dispatch = Dispatch(
            back_end="metal",
            release=release,
            gpu=Gpu(generation=generation, size=size, cores=1),
        )
        for family, (depth, columns) in product(("affine", "fp", "float"), sizes):
            found = dispatch.kernels(family, depth=depth, columns=columns)
            assert found[0].first_row == 1
            assert found[-1].last_row is None
            for use, following in pairwise(found):
                assert use.last_row == following.first_row - 1


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_every_line_has_a_source_and_a_kernel_that_is_described(back_end: str) -> None:
    tables = kernel_data(back_end)
    for table in ("dispatch", "limits", "attention", "grouping"):
        for line in tables.get(table, []):
            assert line["source"].startswith("mlx")
            assert line.get("kernel", next(iter(tables["kernels"]))) in tables["kernels"]
    assert {line["kernel"] for line in tables["dispatch"]} == set(tables["kernels"])


def test_cuda_is_per_row_below_eight_rows_then_tiled() -> None:
    """The step of an H200 between 7 and 8 rows, and its next ones at 17 and 33."""
    cuda = dispatch_of("cuda", "mlx-0.32.4", None)
    assert cuda is not None
    found = cuda.kernels("affine", depth=4096, columns=14336)
    assert [(use.first_row, use.kernel.tile_rows) for use in found] == [
        (1, 1.0),
        (8, 16.0),
        (17, 32.0),
        (33, 64.0),
    ]
    assert cuda.limits is None


@pytest.mark.parametrize(
    ("back_end", "runtime", "architecture"),
    [
        ("metal", "mlx-0.32.4", None),  # Apple's GPUs differ
        ("cuda", "mlx-0.31.2", None),  # not read
        ("cpu", "mlx-0.31.2", None),
        ("vulkan", "mlx-0.32.4", None),
        ("metal", "test", "g15g"),
    ],
)
def test_what_the_tables_do_not_cover_is_none(
    back_end: str, runtime: str, architecture: str | None
) -> None:
    assert dispatch_of(back_end, runtime, gpu(architecture) if architecture else None) is None


class TestAttention:
    """How many query rows the vector kernel takes."""

    @pytest.mark.parametrize(
        ("heads", "last_row"), [(1, 8), (4, 8), (5, 6), (8, 4), (16, 2), (32, 1), (33, 0)]
    )
    def test_rows_times_query_heads_are_at_most_32(self, heads: int, last_row: int) -> None:
        vector = vector_attention("metal", "mlx-0.32", {})
        assert vector is not None
        assert vector.last_row(query_heads_per_kv_head=heads, head_dim=128) == last_row

    @pytest.mark.parametrize(
        ("runtime", "head_dim", "last_row"),
        [
            ("mlx-0.31", 256, 8),
            ("mlx-0.31", 80, 0),
            ("mlx-0.32.1", 192, 0),
            ("mlx-0.32.2", 192, 8),
        ],
    )
    def test_head_sizes(self, runtime: str, head_dim: int, last_row: int) -> None:
        vector = vector_attention("metal", runtime, {})
        assert vector is not None
        assert vector.last_row(query_heads_per_kv_head=4, head_dim=head_dim) == last_row

    @pytest.mark.parametrize("back_end", ["cuda", "cpu", "vulkan"])
    def test_other_back_ends_have_no_such_rule(self, back_end: str) -> None:
        assert vector_attention(back_end, "mlx-0.32", {}) is None

    def test_cuda_has_its_own_kernel_only_where_cudnn_is_turned_off(self) -> None:
        off = {"MLX_CUDA_USE_CUDNN_SDPA": "0"}
        assert library_attention("cuda", "mlx-0.32.4", {}) is not None
        assert vector_attention("cuda", "mlx-0.32.4", {}) is None
        assert library_attention("cuda", "mlx-0.32.4", off) is None
        vector = vector_attention("cuda", "mlx-0.32.4", off)
        assert vector is not None
        assert vector.last_row(query_heads_per_kv_head=16, head_dim=128) == 3
        assert vector.last_row(query_heads_per_kv_head=1, head_dim=256) == 0
        assert not vector.fused_beyond
        assert vector.one_pass_to_context == 1024
        assert vector.beyond_tile_rows == 64

    @pytest.mark.parametrize(
        ("rows", "sequences", "unfused"),
        [(3, 1, False), (4, 1, True), (1, 2, True)],
    )
    def test_rows_that_no_kernel_takes_and_batches_are_unfused(
        self, rows: int, sequences: int, unfused: bool
    ) -> None:
        off = {"MLX_CUDA_USE_CUDNN_SDPA": "0"}
        vector = vector_attention("cuda", "mlx-0.32.4", off)
        asked = {"query_heads_per_kv_head": 4, "head_dim": 128}
        assert is_unfused(vector, rows=rows, sequences=sequences, **asked) == unfused
        metal = vector_attention("metal", "mlx-0.32.4", {})
        assert is_unfused(metal, rows=rows, sequences=sequences, **asked) == (sequences > 1)


class TestGrouping:
    """When experts share tiles."""

    def test_four_pairs_an_expert_and_sixty_four_in_all(self) -> None:
        metal = grouping("metal", "mlx-0.31")
        assert metal is not None
        assert metal.tile_rows == 16
        # 8 experts: 32 pairs would do for MLX, but mlx-lm sorts rows from 64 on
        assert [bool(metal.groups(pairs=p, num_experts=8)) for p in (32, 63, 64)] == [0, 0, 1]
        # 128 experts want 512 pairs
        assert [bool(metal.groups(pairs=p, num_experts=128)) for p in (511, 512)] == [0, 1]

    @pytest.mark.parametrize("back_end", ["cuda", "cpu"])
    def test_cuda_and_cpu_never_group(self, back_end: str) -> None:
        assert grouping(back_end, "mlx-0.32") is None


def test_names_of_releases_and_tables_agree() -> None:
    """No line begins or ends at a release that does not exist."""
    for back_end in BACK_ENDS:
        for table in ("dispatch", "limits", "attention", "grouping"):
            for line in kernel_data(back_end).get(table, []):
                for name in (f"mlx-{line[bound]}" for bound in ("since", "until") if bound in line):
                    assert runtime_name(named_release(name)) == name


class TestCommits:
    """How many kernels MLX gathers before a device sees the first."""

    @pytest.mark.parametrize(
        ("back_end", "architecture", "kernels"),
        [
            ("cuda", "sm_90", 100),
            ("cuda", "sm_121", 20),
            ("cuda", "sm_86", 20),
            ("cuda", "", 0),
            ("metal", "applegpu_g15s", 0),
            ("cpu", "", 0),
        ],
    )
    def test_it_is_told_by_the_architecture(
        self, back_end: str, architecture: str, kernels: int
    ) -> None:
        assert kernels_per_commit(back_end, "mlx-0.32.4", architecture, {}) == kernels

    @pytest.mark.parametrize(("stated", "kernels"), [("7", 7), ("0", 100), ("many", 100)])
    def test_the_environment_may_say_otherwise(self, stated: str, kernels: int) -> None:
        variables = {"MLX_MAX_OPS_PER_BUFFER": stated}
        assert kernels_per_commit("cuda", "mlx-0.32.4", "sm_90", variables) == kernels
