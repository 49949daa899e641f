"""Which law a machine prices a matrix, an expert and a head by, hot and cold."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from model.errors import InputError
from model.machine.kernels.dispatch import dispatch_of
from model.machine.kernels.gpu import Gpu
from model.machine.profile_store import named_profile
from model.machine.row_law import Product, RowLaw, Shape
from model.network.weight_format import weight_format
from tests.model.machines import flat_law, machine

M3 = named_profile("m3-10core-16gb").machine
H200 = named_profile("h200-mlx-0.32.4").machine
FOUR_BITS = weight_format("4bit")


def first_rows(law: RowLaw) -> list[int]:
    return [regime.first_row for regime in law.regimes]


class TestLaw:
    """The kernel is chosen by the single matrix, the shape class by all its siblings."""

    @pytest.mark.parametrize(
        ("depth", "columns", "widest", "limit"),
        [
            (2048, 2048, None, 13),
            (4096, 4096, None, 15),
            (4096, 6144, 4096, 15),  # query, key and value: none is wider than the query
            (4096, 6144, None, 13),
            (4096, 28672, 14336, 13),
            (14336, 4096, None, 13),
        ],
    )
    def test_an_m3_tiles_from_the_limit_of_the_widest_matrix(
        self, depth: int, columns: int, widest: int | None, limit: int
    ) -> None:
        law = M3.law(FOUR_BITS, depth=depth, columns=columns, widest=widest)
        assert first_rows(law) == [1, limit]

    def test_16_bit_weights_have_no_such_limit(self) -> None:
        law = M3.law(weight_format("bf16"), depth=4096, columns=4096)
        assert law is M3.laws["float", Shape.WIDE]

    def test_a_law_without_a_tiled_kernel_is_left_alone(self) -> None:
        gpu = Gpu(generation=15, size="g", cores=10)
        law = flat_law(bandwidth=1e11)
        tabled = machine(law, dispatch=dispatch_of("metal", "mlx-0.32", gpu))
        assert tabled.law(FOUR_BITS, depth=4096, columns=4096) is law

    @pytest.mark.parametrize("shape", [(4096, 28672), (14336, 4096), (4096, 4096)])
    def test_a_runtime_whose_limits_ignore_size_prices_as_it_was_measured(
        self, shape: tuple[int, int]
    ) -> None:
        depth, columns = shape
        law = H200.law(FOUR_BITS, depth=depth, columns=columns, widest=1024)
        assert law in [H200.laws["4bit", each] for each in (Shape.WIDE, Shape.TALL, Shape.SQUARE)]

    def test_a_narrow_matrix_is_priced_by_the_class_that_was_timed_with_narrow_ones(self) -> None:
        """Wide by its sides, but narrower than any wide one: a GPU is not full of it."""
        square = flat_law(bandwidth=1e11)
        wide = replace(flat_law(bandwidth=2e11), least_columns=16_384)
        here = machine(square, laws={("4bit", Shape.SQUARE): square, ("4bit", Shape.WIDE): wide})
        assert here.law(FOUR_BITS, depth=2048, columns=16_384) is wide
        assert here.law(FOUR_BITS, depth=2048, columns=5120) is square
        alone = machine(wide, laws={("4bit", Shape.WIDE): wide})
        assert alone.law(FOUR_BITS, depth=2048, columns=5120) is wide

    def test_the_same_question_has_the_same_answer(self) -> None:
        one, two = (M3.law(FOUR_BITS, depth=4096, columns=4096) for _ in range(2))
        assert one is two

    def test_a_format_nobody_measured_is_one_line(self) -> None:
        only = machine(flat_law(bandwidth=1.0), laws={("4bit", Shape.WIDE): flat_law(bandwidth=1)})
        with pytest.raises(InputError, match="format bf16: was never measured on test"):
            only.law(weight_format("bf16"), depth=64, columns=64)


class TestExpertsLaw:
    """Gathered products have a law of their own where they were measured."""

    def test_the_expert_law_is_used_for_experts_alone(self) -> None:
        dense, expert = flat_law(bandwidth=1e11), flat_law(bandwidth=5e10)
        laws = {("4bit", Shape.WIDE): dense, ("affine", Shape.EXPERT): expert}
        both = machine(dense, laws=laws)
        assert both.experts_law(FOUR_BITS, depth=2048, columns=768) is expert
        assert both.law(FOUR_BITS, depth=2048, columns=768) is dense

    def test_dense_laws_stand_in(self) -> None:
        dense = {key: law for key, law in H200.laws.items() if key[1] is not Shape.EXPERT}
        bare = replace(H200, laws=dense)
        assert bare.experts_law(FOUR_BITS, depth=2048, columns=768) is dense["4bit", Shape.TALL]
        assert H200.experts_law(FOUR_BITS, depth=2048, columns=768) not in dense.values()

    def test_grouping_is_of_the_back_end(self) -> None:
        assert M3.grouping is not None
        assert H200.grouping is None


class TestAttentionLaw:
    """The vector kernel of Metal."""

    @pytest.mark.parametrize(
        ("heads", "head_dim", "expected"),
        [(1, 128, [1, 9]), (4, 128, [1, 9]), (8, 128, [1, 5]), (16, 64, [1, 3]), (48, 128, [1, 2])],
    )
    def test_more_query_heads_leave_it_sooner(
        self, heads: int, head_dim: int, expected: list[int]
    ) -> None:
        law = M3.attention_law(query_heads_per_kv_head=heads, head_dim=head_dim)
        assert first_rows(law) == expected

    def test_several_rows_of_an_odd_head_size_go_to_the_next_kernel(
        self,
    ) -> None:
        """One row is a product of vectors, whichever kernel makes it."""
        law = M3.attention_law(query_heads_per_kv_head=4, head_dim=80)
        assert first_rows(law) == [1, 2]
        assert law.regimes[0] == M3.attention.regimes[0]
        assert law.regimes[1].tile_rows == M3.attention.regimes[1].tile_rows

    def test_other_back_ends_keep_their_law(self) -> None:
        assert H200.attention_law(query_heads_per_kv_head=8, head_dim=80) is H200.attention

    def test_a_law_of_one_kernel_is_left_alone(self) -> None:
        law = flat_law(bandwidth=1e11)
        only = replace(M3, attention=law)
        assert only.attention_law(query_heads_per_kv_head=8, head_dim=80) is law


class TestSustained:
    """A machine after minutes of work."""

    def test_products_and_overheads_take_one_over_the_share(self) -> None:
        hot = M3.sustained()
        assert hot is not None
        product = Product(read_bytes=1e9, depth=4096, columns=4096)
        for rows in (1, 5, 20):
            cold_s, hot_s = (
                float(each.law(FOUR_BITS, depth=4096, columns=4096).time(product, rows).total_s)
                for each in (M3, hot)
            )
            assert hot_s == pytest.approx(cold_s / 0.715)
        assert float(hot.device.layer_s) == pytest.approx(float(M3.device.layer_s) / 0.715)
        assert hot.host is M3.host
        assert hot.sustained() is None

    def test_every_law_of_attention_is_slowed(self) -> None:
        cold = named_profile("h200-mlx-0.32.4-no-cudnn").machine
        hot = replace(cold, sustained_share=0.5).sustained()
        assert hot is not None
        product = Product(read_bytes=1e9, depth=4096, columns=4096)
        laws = ("attention", "two_pass_attention", "unfused_attention", "aligned_attention")
        for name in laws:
            before_s, after_s = (
                float(getattr(each, name).time(product, 2).total_s) for each in (cold, hot)
            )
            assert after_s == pytest.approx(2.0 * before_s)

    def test_published_losses_are_its_interval(self) -> None:
        """15 to 42 % lost: 0.58 to 0.85 of the cold speed remain, as a 90 % interval."""
        draws = named_profile("m3-10core-16gb").sampled_machine.sustained_share
        assert draws is not None
        assert np.quantile(draws, [0.05, 0.95]) == pytest.approx([0.58, 0.85], abs=0.04)

    def test_no_draw_speeds_it_up(self) -> None:
        sure = replace(M3, sustained_share=np.array([0.5, 1.2])).sustained()
        assert sure is not None
        np.testing.assert_allclose(
            np.asarray(sure.device.layer_s) / float(M3.device.layer_s), [2.0, 1.0]
        )

    def test_unknown_where_nobody_says(self) -> None:
        assert H200.sustained() is None
        assert math.isinf(flat_law(bandwidth=1e11).at_speed(0.5).regimes[0].flops_per_s)
