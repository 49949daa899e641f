from __future__ import annotations

from dataclasses import replace
from itertools import groupby, product

import pytest

from calibrate.environment import Environment
from calibrate.fit.overheads import DEEP_LAYERS
from calibrate.grid import MODES
from calibrate.pass_questions import SEVERAL_ROWS
from calibrate.plan import EXPECTED_S, MEMORY_SHARE, checked, plan
from calibrate.probe import Plan, Probe
from calibrate.probe_network import NORMED
from calibrate.samples import REFERENCE
from calibrate.session import Speed
from model.errors import InputError
from model.machine.kernels.attention import ALIGNED_KEYS
from model.machine.row_law import Shape, shape_of
from model.network.weight_format import weight_format
from tests.calibrate.test_session import MACHINE

M3 = (MACHINE, Speed(row_weights_per_s=5.5e11, bytes_per_s=9e10, kernel_s=5e-6))
M1_8GB = (
    replace(MACHINE, memory_bytes=8 * 2**30, recommended_working_set_bytes=5_726_623_060),
    Speed(row_weights_per_s=2e11, bytes_per_s=6e10, kernel_s=6e-6),
)
H200 = (
    replace(MACHINE, device="cuda", memory_bytes=150 * 10**9, recommended_working_set_bytes=None),
    Speed(row_weights_per_s=1.4e12, bytes_per_s=2.5e12, kernel_s=1e-5),
)
H200_OWN = (
    replace(H200[0], mlx_variables=(("MLX_CUDA_USE_CUDNN_SDPA", "0"),)),
    H200[1],
)
"""Without the library's attention: four rows and more leave scores in memory."""
PROCESSOR = (
    replace(MACHINE, device="cpu", recommended_working_set_bytes=None),
    Speed(row_weights_per_s=1e9, bytes_per_s=4e9, kernel_s=4e-6),
)
SLOW_PROCESSOR = (PROCESSOR[0], Speed(row_weights_per_s=4e8, bytes_per_s=2e9, kernel_s=5e-6))
DEVICES = {
    "m3": M3,
    "m1-8gb": M1_8GB,
    "h200": H200,
    "h200-own": H200_OWN,
    "processor": PROCESSOR,
    "slow": SLOW_PROCESSOR,
}

every_plan = pytest.mark.parametrize(
    "planned",
    [
        pytest.param(plan(environment, mode, (), speed), id=f"{name}-{mode}")
        for name, (environment, speed) in DEVICES.items()
        for mode in MODES
    ],
)


def of_kind(planned: Plan, probe: str) -> list[Probe]:
    return [each for each in planned.probes if each.probe == probe]


@every_plan
class TestEveryPlan:
    def test_fits_its_time(self, planned: Plan) -> None:
        slow = "fp32" in planned.formats
        assert planned.total_s <= EXPECTED_S[planned.mode, slow]

    def test_asks_everything_that_the_fit_needs(self, planned: Plan) -> None:
        kinds = {each.probe for each in planned.probes}
        assert kinds >= {"op", "copy", "link", "linear", "attention", "layers", "host"}
        assert ("experts" in kinds) == (planned.mode == "full")

    def test_asks_nothing_twice(self, planned: Plan) -> None:
        asked = [(each.probe, each.settings) for each in planned.probes]
        assert len(asked) == len(set(asked))

    def test_every_shape_is_swept_in_every_format(self, planned: Plan) -> None:
        dense = set(Shape) - {Shape.EXPERT}
        swept = {
            (
                each.text("format"),
                shape_of(depth=each.number("depth"), columns=each.number("columns")),
            )
            for each in of_kind(planned, "linear")
        }
        assert swept == {(name, shape) for name in planned.formats for shape in dense}

    def test_every_product_has_its_link_at_both_ends_of_the_rows(self, planned: Plan) -> None:
        def shape(probe: Probe) -> tuple[int, int]:
            return probe.number("depth"), probe.number("columns")

        for wanted, products in groupby(of_kind(planned, "linear"), key=shape):
            rows = {probe.number("rows") for probe in products}
            linked = {p.number("rows") for p in of_kind(planned, "link") if shape(p) == wanted}
            assert min(linked) == min(rows)
            assert max(linked) == max(rows)

    def test_layers_and_passes_can_be_told_apart(self, planned: Plan) -> None:
        for probe in ("layers", "host"):
            depths: dict[int, set[int]] = {}
            for each in of_kind(planned, probe):
                depths.setdefault(each.number("hidden"), set()).add(each.number("layers"))
            assert max(map(len, depths.values())) >= 2

    def test_the_host_submits_one_row_and_several_of_every_format(self, planned: Plan) -> None:
        submitted = {
            (each.text("format"), each.number("layers"), each.number("rows"))
            for each in of_kind(planned, "host")
            if each.text("mode") == "submit" and "network" not in dict(each.settings)
        }
        submits = [each for each in of_kind(planned, "host") if each.text("mode") == "submit"]
        depths = {each.number("layers") for each in submits}
        assert len(depths) >= 2
        assert submitted == set(product(planned.formats, depths, (1, *SEVERAL_ROWS)))

    def test_a_new_context_is_met_by_one_row_and_by_several(self, planned: Plan) -> None:
        """Beside passes that meet the same one again, of the same network; and of other heads."""
        hosts = of_kind(planned, "host")
        growing = [each for each in hosts if each.text("mode") == "growing"]
        assert [each.number("rows") for each in growing[:3]] == [1, *SEVERAL_ROWS]
        assert all(each.number("rows") == SEVERAL_ROWS[-1] for each in growing[3:])
        names = ("query_heads", "kv_heads", "head_dim")
        heads = {tuple(map(each.number, names)) for each in growing[2:]}
        assert len(heads) == len(growing) - 2
        [material] = {each.material for each in growing[:3]}
        beside = {each.text("mode") for each in hosts if each.material == material}
        assert beside >= {"build", "submit", "awaited"}

    def test_rows_of_a_pass_and_its_past_are_keys_that_lie_best(self, planned: Plan) -> None:
        for each in of_kind(planned, "layers"):
            rows, past = each.number("rows"), each.number("context")
            assert (past + rows * (rows > 1)) % ALIGNED_KEYS == 0

    def test_neighbours_share_what_they_are_made_of(self, planned: Plan) -> None:
        materials = [name for name, _ in groupby(planned.probes, key=lambda p: p.material) if name]
        assert len(materials) == len(set(materials))

    def test_a_sweep_starts_and_ends_with_the_reference(self, planned: Plan) -> None:
        for number in range(planned.sweeps):
            kinds = [probe.probe for probe in planned.sweep(number)]
            assert kinds[0] == kinds[-1] == REFERENCE
            gaps = [len(list(run)) for kind, run in groupby(kinds, key=REFERENCE.__ne__) if kind]
            assert max(gaps) <= planned.reference_every

    def test_sweeps_go_there_and_back(self, planned: Plan) -> None:
        there, back = (
            [probe for probe in planned.sweep(number) if probe.probe != REFERENCE]
            for number in (0, 1)
        )
        assert there == back[::-1]


def test_an_accelerator_gets_every_row_of_a_full_plan() -> None:
    rows = {probe.number("rows") for probe in of_kind(plan(M3[0], "full", (), M3[1]), "linear")}
    assert rows == {*range(1, 21), 24, 32, 48, 64}


@pytest.mark.parametrize("mode", MODES)
def test_scores_in_memory_are_timed_over_all_alignments_and_over_the_best(mode: str) -> None:
    """A batch grows with every pass, and three rows or fewer have a kernel."""
    asked: dict[tuple[int, int], set[int]] = {}
    for each in of_kind(plan(H200_OWN[0], mode, (), H200_OWN[1]), "attention"):
        place = each.number("sequences", 1), each.number("rows")
        asked.setdefault(place, set()).add(each.number("contexts", 0))
        assert each.number("context") % ALIGNED_KEYS == 0
    assert {rows for _, rows in asked} >= {1, 4}
    for (sequences, rows), contexts in asked.items():
        alone = {0} if rows <= 3 else {1, ALIGNED_KEYS}
        assert contexts == (alone if sequences == 1 else {ALIGNED_KEYS})


def test_with_a_library_scores_are_in_memory_for_a_batch_alone() -> None:
    for each in of_kind(plan(H200[0], "full", (), H200[1]), "attention"):
        turned = ALIGNED_KEYS if each.number("sequences", 1) > 1 else 0
        assert each.number("contexts", 0) == turned


@pytest.mark.parametrize("name", DEVICES)
def test_deep_passes_are_waited_for_and_norms_of_heads_timed_where_there_is_time(name: str) -> None:
    environment, speed = DEVICES[name]
    for mode in MODES:
        layers = of_kind(plan(environment, mode, (), speed), "layers")
        deep = [each for each in layers if each.number("layers") >= DEEP_LAYERS]
        heads = [each for each in layers if dict(each.settings).get("network") == NORMED]
        told = mode == "full" and environment.device != "cpu"
        assert bool(deep) == bool(heads) == told
        assert {each.text("mode") for each in deep} <= {"awaited"}
        assert {each.text("mode") for each in heads} <= {"queued"}


def test_a_slower_device_gets_smaller_matrices() -> None:
    def widest(environment: Environment, speed: Speed) -> int:
        planned = plan(environment, "quick", (), speed)
        return max(probe.number("depth") for probe in of_kind(planned, "linear"))

    assert widest(*M3) > widest(*PROCESSOR) > widest(*SLOW_PROCESSOR)


def test_cold_weights_outgrow_every_cache_and_stay_safe() -> None:
    planned = plan(M3[0], "quick", (), M3[1])
    assert all(probe.memory_bytes >= 2**30 for probe in of_kind(planned, "linear"))
    assert all(probe.memory_bytes <= planned.memory_bytes for probe in planned.probes)
    assert planned.memory_bytes == int(MEMORY_SHARE * M3[0].memory_limit_bytes)


def test_matrices_have_whole_groups() -> None:
    for probe in of_kind(plan(PROCESSOR[0], "full", ("4bit-g128",), PROCESSOR[1]), "linear"):
        assert weight_format(probe.text("format")).fits(probe.number("depth"))


def test_formats_are_named_as_the_device_stores_them() -> None:
    assert [form.name for form in checked("cpu", "quick", ())] == ["4bit-s32", "8bit-s32", "fp32"]
    assert [form.name for form in checked("metal", "quick", ())] == ["4bit", "8bit", "bf16"]
    assert [form.name for form in checked("cuda", "quick", ("MXFP4", "mxfp4"))] == ["mxfp4"]


@pytest.mark.parametrize(("mode", "formats"), [("fast", ()), ("quick", ("4-bits",))])
def test_unknown_names_are_refused(mode: str, formats: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        plan(M3[0], mode, formats, M3[1])


def test_the_fingerprint_is_of_the_questions() -> None:
    planned = plan(M3[0], "quick", (), M3[1])
    nearly = replace(M3[1], kernel_s=5.1e-6)
    assert plan(M3[0], "quick", (), nearly).fingerprint == planned.fingerprint
    assert plan(M3[0], "quick", ("4bit",), M3[1]).fingerprint != planned.fingerprint
    assert replace(planned, sweeps=3).fingerprint != planned.fingerprint
