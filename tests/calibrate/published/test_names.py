"""Names in published runs: what they stand for, and what is refused."""

from __future__ import annotations

from typing import TypeVar

import pytest

from calibrate.published.chips import Chip
from calibrate.published.evidence import chip_facts, format_map, name_map, row_costs, shipped_runs
from calibrate.published.gguf import BITS_PER_WEIGHT, WHOLE_FILES, bits_of, stored_format
from calibrate.published.names import chip_of, draft_of, format_of, runtime_family, target_of
from calibrate.published.refusal import EXPLANATIONS, Reason, Refusal
from model import catalog
from model.network.draft_head import HeadKind
from model.network.weight_format import weight_format
from tests.calibrate.published.published_run import PLAIN, SPECULATIVE, published

Found = TypeVar("Found")


def known(found: Found | Refusal) -> Found:
    assert not isinstance(found, Refusal), str(found)
    return found


def refused(found: object) -> Reason:
    assert isinstance(found, Refusal)
    assert found.text
    return found.reason


def test_a_name_and_a_quantization_are_a_checkpoint() -> None:
    target = known(target_of(published()))
    assert target.architecture.name == "llama-3.1-8b"
    assert target.total_bytes == 4_517_404_672  # as model.network.target counts it


@pytest.mark.parametrize(
    ("chip", "quant", "gigabytes"),
    [
        ("M5 Max", "4bit, MLP 8bit", 10.95),
        ("M3 Ultra", "4bit", 6.70),
        ("M5 Max", "8-bit FFN mix", 10.95),
        ("M5 Max", "4-bit FFN mix", 6.70),
    ],
)
def test_a_file_whose_mlps_have_other_bits(chip: str, quant: str, gigabytes: float) -> None:
    """mlx-community/gemma-4-12B-it-4bit was 10.99 GB; a later file of that name is 6.70."""
    changed = {"chip": chip, "gpu_cores": "", "memory_gb": "", "target_model": "gemma-4-12b"}
    target = known(target_of(published(PLAIN | changed | {"quant": quant})))
    assert target.total_bytes / 1e9 == pytest.approx(gigabytes, rel=0.005)


@pytest.mark.parametrize(
    ("target", "quant", "gigabytes"),
    [
        ("LLaMA-7B v2", "F16", 13.475),  # as llama.cpp discussion 4167 lists the files
        ("LLaMA-7B v2", "Q8_0", 7.162),
        ("LLaMA-7B v2", "Q4_0", 3.823),
        ("gpt-oss-20b", "MXFP4", 12.1),  # as its benches/mac-m2-ultra does
        ("gpt-oss-120b", "MXFP4", 63.37),
        ("Llama-3.1-8B-Instruct", "Q4_K_M", 4.92),  # 4.58 GiB in tools/quantize/README.md
        ("Llama-3.1-8B-Instruct", "Q5_K_M", 5.73),
        ("Llama-3.1-8B-Instruct", "Q3_K_M", 4.02),
        ("Llama-3.1-8B-Instruct", "Q2_K", 3.17),
        ("Llama-3.1-8B-Instruct", "Q3_K_L", 4.32),
        ("Llama-3.1-8B-Instruct", "IQ3_XXS", 3.26),
        ("Llama-3.1-8B-Instruct", "q5_k_s.gguf", 5.59),
    ],
)
def test_files_of_llama_cpp_have_their_size(target: str, quant: str, gigabytes: float) -> None:
    run = published(target_model=target, quant=quant, runtime="llama.cpp (Metal)")
    assert known(target_of(run)).total_bytes / 1e9 == pytest.approx(gigabytes, rel=0.015)


@pytest.mark.parametrize(
    ("quant", "file_bytes"),
    [
        ("q2", 86_720_111_488),  # as github:antirez/ds4 issue 768 states its file
        ("q4", 157_001.67 * 2**20),  # as issue 726 shows what was mapped
    ],
)
def test_files_of_ds4_have_their_size(quant: str, file_bytes: float) -> None:
    """Five types in one file, to 0.02 %: what is left is metadata, and norms in 32 bits."""
    run = published(target_model="DeepSeek-V4-Flash", quant=quant, runtime="ds4 (Metal)")
    assert known(target_of(run)).total_bytes == pytest.approx(file_bytes, rel=2e-4)


def test_ds4_holds_its_caches_in_32_bits_and_has_kernels_of_its_own() -> None:
    run = published(target_model="DeepSeek-V4-Flash", quant="q2", runtime="ds4 (Metal)")
    target = known(target_of(run))
    assert target.cache_element_bytes == 4
    assert refused(runtime_family(run)) is Reason.UNKNOWN_RUNTIME
    under_mlx = published(target_model="DeepSeek-V4-Flash", quant="4bit")
    assert known(target_of(under_mlx)).cache_element_bytes == 2


def test_a_mixture_in_two_formats_leaves_bare_routers_alone() -> None:
    run = published(target_model="GLM-5.3-Flash", quant="mixed 4-bit MoE / 8-bit")
    formats = known(target_of(run)).layer_formats(5)
    assert formats["mlp.switch_mlp.down_proj"].name == "4bit"
    assert formats["mlp.shared_experts.down_proj"].name == "8bit"
    assert formats["mlp.gate"].name == formats["attn_hc.fn"].name == "bf16"


def test_a_quantization_belongs_to_its_runtime() -> None:
    assert known(format_of(published(quant="Q8_0", runtime="llama.cpp"))).bits_per_weight == 8.5
    assert known(format_of(published(quant="8bit"))).bits_per_weight == 8.5
    assert known(format_of(published(quant="q8_0"))) == weight_format("q8_0")  # MLX keeps a bias
    assert refused(format_of(published(quant="4bit", runtime="llama.cpp"))) == "unknown format"


def test_a_file_of_unknown_mixture_has_the_bits_of_its_size() -> None:
    mixed = {"runtime": "llama.cpp", "quant": "UD-IQ2_XXS", "target_model": "Qwen3.8-27B"}
    run = published(PLAIN | mixed, model_bytes_gb="9.01")
    assert known(target_of(run)).total_bytes / 1e9 == pytest.approx(9.01, rel=0.02)
    assert refused(target_of(published(PLAIN | mixed))) is Reason.UNKNOWN_FORMAT
    absurd = published(PLAIN | mixed, model_bytes_gb="900")
    assert refused(target_of(absurd)) is Reason.UNKNOWN_FORMAT


def test_fewer_experts_are_fewer_bytes() -> None:
    moe = {"target_model": "Qwen3-30B-A3B (top_k={} experts)"}
    read = [
        known(target_of(published(target_model=moe["target_model"].format(k)))) for k in ("8", "4")
    ]
    assert read[0].total_bytes == read[1].total_bytes
    assert read[0].weight_bytes_per_token > 1.4 * read[1].weight_bytes_per_token


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"target_model": "nobody-7b"}, Reason.UNKNOWN_TARGET),
        ({"target_model": ""}, Reason.UNKNOWN_TARGET),
        ({"target_model": "two models (not named in the article)"}, Reason.UNKNOWN_TARGET),
        ({"quant": "AWQ INT4"}, Reason.UNKNOWN_FORMAT),
        ({"quant": ""}, Reason.UNKNOWN_FORMAT),
    ],
)
def test_what_is_not_known_is_refused(changed: dict[str, str], reason: Reason) -> None:
    assert refused(target_of(published(PLAIN | changed))) is reason


def test_a_draft_is_a_model_or_a_head() -> None:
    target = known(target_of(published()))
    draft = known(draft_of(published(SPECULATIVE), target))
    assert draft.head is None
    assert draft.checkpoint.architecture.name == "llama-3.2-1b"
    qwen = published(
        SPECULATIVE,
        target_model="Qwen3.8-27B",
        draft_model="Qwen3.8-27B MTP head bf16",
    )
    head = known(draft_of(qwen, known(target_of(qwen))))
    assert head.head is not None
    assert head.head.kind is HeadKind.MTP
    assert head.checkpoint.weight_format.name == "bf16"


def test_a_block_drafter_is_in_16_bits_and_a_built_in_head_as_its_target() -> None:
    dflash = published(SPECULATIVE, target_model="Qwen3-8B", draft_model="DFlash head")
    block = known(draft_of(dflash, known(target_of(dflash))))
    assert block.checkpoint.weight_format.name == "bf16"
    mtp = published(SPECULATIVE, target_model="Qwen3.6-27B", draft_model="built-in MTP head")
    built_in = known(draft_of(mtp, known(target_of(mtp))))
    assert built_in.checkpoint.weight_format.name == "4bit"


@pytest.mark.parametrize(
    ("name", "target", "file", "stored_as"),
    [
        (
            "mlx-community/Llama-3.2-1B-Instruct-8bit",
            "Llama-3.1-8B-Instruct",
            "llama-3.2-1b",
            "8bit",
        ),
        ("Qwen3-0.6B bf16", "Qwen3-8B", "qwen3-0.6b", "bf16"),
        ("Qwen3 0.6B (4bit drafter)", "Qwen3-8B", "qwen3-0.6b", "4bit"),
        ("qwen3-0.6b", "Qwen3-8B", "qwen3-0.6b", "4bit"),  # as its target
        ("z-lab/Qwen3-8B-DFlash", "Qwen3-8B", "qwen3-8b-dflash", "bf16"),
        ("DFlash block drafter (4bit drafter)", "Qwen3-8B", "qwen3-8b-dflash", "4bit"),
        ("nextn head", "Qwen3.8-27B", "qwen3.8-27b-mtp", "4bit"),
        ("DFlash 2", "qwen3.8-27b", "qwen3.8-27b-dflash2", "bf16"),
    ],
)
def test_a_draft_is_found_by_its_spelling(
    name: str, target: str, file: str, stored_as: str
) -> None:
    run = published(SPECULATIVE, draft_model=name, target_model=target)
    draft = known(draft_of(run, known(target_of(run))))
    assert draft.checkpoint.architecture.name == file
    assert draft.checkpoint.weight_format.name == stored_as


def test_a_draft_in_an_unknown_format_is_refused() -> None:
    cells = {"runtime": "llama.cpp", "quant": "Q8_0", "target_model": "Qwen3-8B"}
    run = published(SPECULATIVE | cells, draft_model="Qwen3-0.6B Q4")
    assert refused(draft_of(run, known(target_of(run)))) is Reason.UNKNOWN_FORMAT
    eight = published(SPECULATIVE | cells, draft_model="Qwen3-0.6B Q8")
    assert known(draft_of(eight, known(target_of(eight)))).head is None


def test_another_makers_head_is_not_the_shipped_one() -> None:
    run = published(
        SPECULATIVE, draft_model="somebody/Qwen3.6-27B-DSpark", target_model="Qwen3.6-27B"
    )
    assert refused(draft_of(run, known(target_of(run)))) is Reason.UNKNOWN_DRAFT


@pytest.mark.parametrize("name", ["", "llama-160m", "EAGLE-7 head"])
def test_an_unknown_draft_is_refused(name: str) -> None:
    run = published(SPECULATIVE, draft_model=name)
    assert refused(draft_of(run, known(target_of(run)))) is Reason.UNKNOWN_DRAFT


def test_a_head_of_another_target_is_refused() -> None:
    run = published(SPECULATIVE, draft_model="qwen3-8b-dflash")
    assert refused(draft_of(run, known(target_of(run)))) is Reason.UNKNOWN_DRAFT


@pytest.mark.parametrize(
    ("changed", "label", "stated"),
    [
        ({"chip": "M3", "gpu_cores": "10"}, "M3 10-core", True),
        ({"chip": "Apple M4 Max", "memory_gb": "36"}, "M4 Max 32-core", True),
        ({"chip": "M4 Max", "memory_gb": "128"}, "M4 Max 40-core", True),
        ({"chip": "M3 Ultra", "memory_gb": "512"}, "M3 Ultra 80-core", True),
        ({"chip": "M3 Ultra", "memory_gb": "256"}, "M3 Ultra 80-core", False),
        ({"chip": "M4 Max", "mem_bandwidth_gb_s_nominal": "410"}, "M4 Max 32-core", True),
        ({"chip": "DGX Spark (GB10)"}, "DGX Spark (GB10)", True),
        ({"chip": "MacBook Pro M3 Max (40-core GPU)"}, "M3 Max 40-core", True),
        ({"chip": "Apple M2Ultra, 76 GPU cores"}, "M2 Ultra 76-core", True),
        ({"chip": "M4 Max 32c, 36GB"}, "M4 Max 32-core", True),
        ({"chip": "A100 PCIe 80GB"}, "A100 80GB PCIe", True),
        ({"chip": "NVIDIA GeForce RTX 4090 24GB"}, "RTX 4090", True),
    ],
)
def test_cores_follow_from_memory_where_they_can(
    changed: dict[str, str], label: str, stated: bool
) -> None:
    blank = {"gpu_cores": "", "memory_gb": ""}
    chip = known(chip_of(published(PLAIN | blank | changed)))
    assert (chip.label, chip.cores_stated) == (label, stated)


@pytest.mark.parametrize(
    "changed",
    [
        {"chip": ""},
        {"chip": "M9"},
        {"gpu_cores": "11"},
        {"chip": "M3 Max and M4 Max", "gpu_cores": ""},
        {"chip": "RTX 4090 Laptop", "gpu_cores": ""},
    ],
)
def test_an_unknown_chip_is_refused(changed: dict[str, str]) -> None:
    assert refused(chip_of(published(PLAIN | changed))) is Reason.UNKNOWN_CHIP


@pytest.mark.parametrize(
    ("runtime", "version", "date", "family"),
    [
        ("mlx-lm", "mlx 0.32.0", "2026-01", "mlx-0.32"),  # what is stated goes before the date
        ("Rapid-MLX", "0.7.26 / mlx 0.31.2", "2026-09-01", "mlx-0.31"),
        ("mlx-lm", "", "2026-02-01", "mlx-0.29"),
        ("mlx-lm", "", "2026-02-15", "mlx-0.31"),
        ("mlx-lm", "", "2024-09", "mlx-0.17"),
        ("mlx-lm", "mlx 0.30.5", "", "mlx-0.31"),
        ("mlx-lm", "", "2026-03-15", "mlx-0.31"),
        ("ReDrafter-MLX", "2024-09 (mlx ~0.17)", "2024-12-17", "mlx-0.17"),
        ("mlx-lm", "mlx 0.20.0", "", "mlx-0.29"),
        ("mlx-lm", "0.31.3, macOS 26.5", "2026-06", "mlx-0.31"),  # mlx-lm's number is not MLX's
        ("mlxcel (MLX core)", "", "2026-07-06", "mlx-0.31"),
        ("mlxcel (MLX core)", "", "2026-07-07", "mlx-0.32"),
        ("mlx-dspark", "", "2026-08/09", "mlx-0.32"),
        ("mlxcel (MLX CUDA)", "", "2026-10-02", "mlx-0.32-cuda"),
        ("llama.cpp (Metal)", "b10050", "2026-08-07", "llama.cpp"),
        ("llama.cpp (CUDA)", "", "", "llama.cpp-cuda"),
        ("llama.cpp (CPU)", "", "", "llama.cpp-cpu"),
        ("LM Studio (llama.cpp Metal 2.29)", "", "", "llama.cpp"),
        ("LM Studio MLX 1.2", "mlx 0.32.0", "", "mlx-0.32"),
    ],
)
def test_the_family_of_a_runtime(runtime: str, version: str, date: str, family: str) -> None:
    run = published(SPECULATIVE, runtime=runtime, runtime_version=version, date=date)
    assert runtime_family(run) == family


@pytest.mark.parametrize("date", ["2026", "2026-07", "2026-06/07", "", "2026-05+"])
def test_an_open_date_is_refused_unless_one_row_is_asked_for(date: str) -> None:
    cells = {"runtime_version": "", "date": date}
    assert refused(runtime_family(published(SPECULATIVE | cells))) is Reason.UNKNOWN_RUNTIME
    assert runtime_family(published(PLAIN | cells)) == "mlx-0.32"
    batch = published(PLAIN | cells, strategy="batch", batch="8")
    assert refused(runtime_family(batch)) is Reason.UNKNOWN_RUNTIME


def test_a_run_without_the_wide_kernel_is_one_of_the_release_before() -> None:
    narrow = {"notes": "byte-identical (narrow kernel retry)"}
    assert runtime_family(published(SPECULATIVE | narrow)) == "mlx-0.31"
    assert runtime_family(published(SPECULATIVE, quote_or_locator="qmv_wide off")) == "mlx-0.31"
    assert runtime_family(published(PLAIN | narrow)) == "mlx-0.32"  # one row has one kernel
    older = published(SPECULATIVE | narrow, runtime_version="mlx 0.30.1")
    assert runtime_family(older) == "mlx-0.29"


@pytest.mark.parametrize(
    ("changed", "own"),
    [
        ({"k": "7"}, True),
        ({"k": ""}, True),
        ({"k": "3"}, False),  # four rows are MLX's own
        ({"k": "7", "quant": "bf16"}, False),
        ({"strategy": "batch", "k": "", "batch": "4"}, False),
        ({"strategy": "batch", "k": "", "batch": "8"}, True),
    ],
)
def test_a_kernel_for_few_quantized_rows_serves_those(changed: dict[str, str], own: bool) -> None:
    version = "mlx 0.32.2, small-M verify kernel"
    run = published(SPECULATIVE | changed, runtime="mlx-dspark", runtime_version=version)
    assert isinstance(runtime_family(run), Refusal) is own


@pytest.mark.parametrize("chip", ["A100 80GB", "NVIDIA A10", "Tesla M40 24GB"])
def test_a_card_is_no_mac(chip: str) -> None:
    assert runtime_family(published(PLAIN, chip=chip, runtime="llama.cpp")) == "llama.cpp-other"


@pytest.mark.parametrize(
    ("runtime", "version"),
    [
        ("ds4 (Metal)", ""),
        ("vLLM 0.25.1", ""),
        ("mlx-dspark", "mlx 0.32.2 + multi-row attention kernel"),
    ],
)
def test_kernels_of_others_are_refused(runtime: str, version: str) -> None:
    run = published(SPECULATIVE, runtime=runtime, runtime_version=version)
    assert refused(runtime_family(run)) is Reason.UNKNOWN_RUNTIME


def test_every_shipped_run_has_a_source_and_a_place() -> None:
    runs = shipped_runs()
    assert len({run.id for run in runs}) == len(runs) == 1846
    assert all(run.source and run.locator for run in runs)
    assert not any("guruswami" in run.source.lower() for run in runs)  # CC BY-ND 4.0


def test_every_shipped_target_is_in_the_map() -> None:
    """A name that the map does not have would be a slip; one it cannot place is a refusal."""
    mapped = {each["name"] for each in name_map() if each["role"] == "target"}
    assert {run.target for run in shipped_runs()} <= mapped


def test_every_name_leads_to_something_shipped() -> None:
    shipped = {*catalog.architecture_names(), *catalog.head_names(), ""}
    assert {each["file"] for each in name_map()} <= shipped
    for entry in format_map():
        for column in ("layers", "head", "outside_experts"):
            if entry[column]:
                assert stored_format(entry[column]).bits_per_weight > 1.0


def test_packed_formats_have_their_bits() -> None:
    for name in (*BITS_PER_WEIGHT, *WHOLE_FILES):
        bits = bits_of(name)
        assert stored_format(f"gguf-{name}").bits_per_weight == pytest.approx(bits, abs=1 / 64)
    # Kinds whose layers are all of one type have its bits.
    assert bits_of("q3_k_s_m") == pytest.approx(BITS_PER_WEIGHT["q3_k"], abs=0.01)
    assert bits_of("q5_k_s_m") == pytest.approx(BITS_PER_WEIGHT["q5_k"], abs=0.01)


def test_the_other_tables_are_there() -> None:
    assert {"source", "M", "kind"} <= row_costs()[0].keys()
    for facts in chip_facts():
        if facts["nominal_bandwidth_bytes_per_s"]:
            assert facts["nominal_bandwidth_source"], facts["chip"]
    assert isinstance(chip_of(published()), Chip)


def test_every_reason_is_explained() -> None:
    assert set(EXPLANATIONS) == set(Reason)
