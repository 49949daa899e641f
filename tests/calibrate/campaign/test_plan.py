from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from calibrate.campaign.agenda import planned_key
from calibrate.campaign.arms import FIELDS, PlannedArm, check_own
from calibrate.campaign.plan import planned_runs, read_plan, shipped_plans
from calibrate.run_settings import STRATEGIES
from model.errors import InputError

SMALL = """
about = "two formats, two contexts"
seed = 3

[[stages]]
targets = ["smollm2-135m"]
formats = ["4bit", "8bit"]
contexts = [16, 64]
repeats = 2

[[stages.arms]]
strategy = "speculative"
draft = "same"
draft_lengths = [1, 2]
acceptances = [0.5]

[[stages.arms]]
strategy = "canvas"
canvases = [8]
"""
TWICE = SMALL.replace("seed = 3", "passes = 2")


def written(folder: Path, text: str) -> str:
    path = folder / "plan.toml"
    path.write_text(text)
    return str(path)


class TestPlannedRuns:
    def test_every_combination_and_the_first_run_again(self, tmp_path: Path) -> None:
        runs = planned_runs(read_plan(written(tmp_path, SMALL)))
        # Plain, two draft lengths and a canvas; twice; at two contexts; and a reference again.
        assert len(runs) == 2 * (4 * 2 * 2 + 1)
        assert runs[16] == runs[0]

    def test_networks_and_contexts_are_neighbours(self, tmp_path: Path) -> None:
        runs = planned_runs(read_plan(written(tmp_path, SMALL)))
        formats = [run.format_name for run in runs]
        assert formats == sorted(formats)
        assert [run.context for run in runs[:17]] == [16] * 8 + [64] * 8 + [16]

    def test_repeats_go_there_and_back(self, tmp_path: Path) -> None:
        runs = planned_runs(read_plan(written(tmp_path, SMALL)))
        names = [run.settings.text for run in runs[:8]]
        assert names == [*names[:4], *names[3::-1]]
        assert names[0] == "plain"

    def test_each_make_knows_how_many_were_before(self, tmp_path: Path) -> None:
        text = SMALL.replace("repeats = 2", "repeats = 3\nagreement = 0.05")
        runs = planned_runs(read_plan(written(tmp_path, text)))
        assert [run.made_before for run in runs[:13]] == [0] * 4 + [1] * 4 + [2] * 4 + [0]
        assert {run.agreement for run in runs} == {0.05}

    def test_each_pass_goes_through_all_stages_and_closes_no_network(self, tmp_path: Path) -> None:
        runs = planned_runs(read_plan(written(tmp_path, TWICE)))
        first, second = runs[:32], runs[32:]
        assert len(first) == len(second) == 2 * 4 * 2 * 2
        assert [run.made_before for run in first[:8]] == [0] * 4 + [1] * 4
        assert [run.made_before for run in second[:8]] == [2] * 4 + [3] * 4
        again = [replace(run, made_before=run.made_before + 2) for run in first]
        # Each repeat goes the other way, so that its four decodes stand in reverse.
        assert [run for at in range(0, 32, 4) for run in again[at : at + 4][::-1]] == [*second]

    @pytest.mark.parametrize(
        ("passes", "repeats", "reversed_ones"), [(4, 1, (1, 3)), (2, 2, (1, 2)), (2, 3, (1, 3, 5))]
    )
    def test_passes_go_there_and_back_like_repeats(
        self, tmp_path: Path, passes: int, repeats: int, reversed_ones: tuple[int, ...]
    ) -> None:
        text = SMALL.replace("seed = 3", f"passes = {passes}")
        text = text.replace("repeats = 2", f"repeats = {repeats}")
        runs = planned_runs(read_plan(written(tmp_path, text)))
        here = [run for run in runs if (run.format_name, run.context) == ("4bit", 16)]
        names = [run.settings.text for run in here]
        there, back = names[:4], names[3::-1]
        assert names == [
            name
            for number in range(passes * repeats)
            for name in (back if number in reversed_ones else there)
        ]

    def test_passes_let_makes_agree_without_repeats(self, tmp_path: Path) -> None:
        text = SMALL.replace("seed = 3", "passes = 3")
        text = text.replace("repeats = 2", "agreement = 0.05")
        runs = planned_runs(read_plan(written(tmp_path, text)))
        assert [run.made_before for run in runs] == [0] * 16 + [1] * 16 + [2] * 16

    def test_the_target_as_its_own_draft_is_recorded_by_its_name(self, tmp_path: Path) -> None:
        run = planned_runs(read_plan(written(tmp_path, SMALL)))[1]
        assert run.draft is None
        settings = planned_key(run)[3]
        assert (settings.draft, settings.draft_format) == ("smollm2-135m", "4bit")
        assert (settings.forced_acceptance, settings.seed) == (0.5, 3)

    def test_a_draft_has_the_targets_format_unless_it_says_otherwise(self, tmp_path: Path) -> None:
        other = SMALL.replace('draft = "same"', 'draft = "smollm2-360m"')
        run = planned_runs(read_plan(written(tmp_path, other)))[1]
        assert run.draft == ("smollm2-360m", "4bit", "random")
        assert planned_key(run)[3].draft_format == "4bit"


DIFFUSION = """
about = "answers of two lengths"
seed = 3

[[stages]]
targets = ["llada2.0-mini"]
formats = ["4bit"]
contexts = [64]

[[stages.arms]]
strategy = "diffusion"
blocks = [32, 64]
answers = [32, 128]
committed = [4.0]
"""
HEAD = """
about = "a head"

[[stages]]
targets = ["qwen3.5-4b"]
formats = ["4bit"]
contexts = [64]

[[stages.arms]]
strategy = "draft-head"
head = "qwen3.5-4b-mtp"
draft_lengths = [1, 2]
acceptances = [0.5]
"""


class TestByMlxVlm:
    def test_what_denoises_is_not_decoded_plainly(self, tmp_path: Path) -> None:
        runs = planned_runs(read_plan(written(tmp_path, DIFFUSION)))
        places = [(run.settings.block, run.tokens) for run in runs]
        assert places == [(32, 32), (32, 128), (64, 32), (64, 128), (32, 32)]
        assert {run.settings.seed for run in runs} == {3}
        assert all(run.by_mlx_vlm for run in runs)
        assert runs[1].text.endswith("diffusion block=32 committed=4 answer=128")

    def test_answers_of_other_lengths_are_no_repeats(self, tmp_path: Path) -> None:
        runs = planned_runs(read_plan(written(tmp_path, DIFFUSION)))
        assert len({planned_key(run) for run in runs}) == 4

    def test_a_head_is_beside_plain_decoding_by_the_same_library(self, tmp_path: Path) -> None:
        plain, one, *_ = planned_runs(read_plan(written(tmp_path, HEAD)))
        assert (plain.settings.strategy, plain.by_mlx_vlm) == ("plain", True)
        assert one.draft == ("qwen3.5-4b-mtp", "bf16", "random")
        assert (one.recorded.draft_format, one.recorded.forced_acceptance) == ("bf16", 0.5)


@pytest.mark.parametrize("name", shipped_plans())
def test_shipped_plans_can_be_run(name: str) -> None:
    plan = read_plan(name)
    assert plan.about
    assert len(planned_runs(plan)) > 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("about = ", "is not toml"),
        ('about = "x"', "stages: is missing"),
        (SMALL.replace("repeats = 2", "colour = 2"), "stages[0].colour: is not a field"),
        (SMALL.replace("repeats = 2", "repeats = 0"), "stage 1: repeats: is out of range"),
        (SMALL.replace("repeats = 2", "agreement = 0.05"), "agreement 0.05: changes nothing where"),
        (SMALL.replace("= 2", "= 2\nagreement = 0.05"), "is made 2 times; plan 3 repeats"),
        (SMALL.replace("= 2", "= 4\nagreement = 5"), "stage 1: agreement: is out of range; give 0"),
        (SMALL.replace("= 2", "= 4\nagreement = -0.1"), "stage 1: agreement: is out of range"),
        (SMALL.replace("= 2", "= 4\nagreement = nan"), "agreement: is nan; give a finite number"),
        (TWICE.replace("passes = 2", "passes = 0"), "passes: are out of range; give 1 to 100"),
        (TWICE.replace("passes = 2", "passes = 101"), "passes: are out of range; give 1 to 100"),
        (TWICE.replace("passes = 2", "passes = 1.5"), "passes: is 1.5; give a whole number"),
        (
            TWICE.replace("repeats = 2", "agreement = 0.05"),
            "is made 2 times; plan 3 repeats or pas",
        ),
        (SMALL.replace("repeats = 2", "tokens = 1"), "stage 1: tokens: is out of range"),
        (SMALL.replace("repeats = 2", 'weights = "some"'), "weights 'some': is unknown"),
        (SMALL.replace("[16, 64]", "[]"), "stage 1: contexts: are none"),
        (SMALL.replace("[16, 64]", "[0]"), "stage 1: contexts: is out of range"),
        (SMALL.replace('["4bit", "8bit"]', '["9bit"]'), "9bit"),
        (SMALL.replace("smollm2-135m", "smollm9-135m"), "smollm9-135m"),
        (SMALL.replace('"canvas"', '"sideways"'), "strategy 'sideways': is not known"),
        (
            SMALL.replace('"canvas"', '"diffusion"'),
            "stage 1: arms: are diffusion and speculative; ",
        ),
        (DIFFUSION.replace("llada2.0-mini", "qwen3-4b"), "qwen3-4b: is no diffusion model"),
        (DIFFUSION.replace("128]", "0]"), "diffusion: answers: is out of range"),
        (DIFFUSION.replace("128]", "40_000]"), "llada2.0-mini: answer of 40000: is, behind 64"),
        (DIFFUSION.replace("answers = [32, 128]", ""), "diffusion: answers: is missing; add"),
        (DIFFUSION.replace("blocks = [32, 64]", ""), "diffusion: block: is 0"),
        (DIFFUSION.replace("[4.0]", "[33.0]"), "diffusion: committed: is 33"),
        (DIFFUSION + "steps = [8]", "steps, committed and threshold: are more than one"),
        (SMALL + "blocks = [8]", "canvas: blocks: is not its own; leave it out: canvas"),
        (SMALL + "answers = [8]", "canvas: answers: is not its own"),
        (HEAD.replace("qwen3.5-4b-mtp", "nothing"), "nothing"),
        (HEAD.replace('["qwen3.5-4b"]', '["qwen3.5-9b"]'), "head qwen3.5-4b-mtp: reads states of"),
        (HEAD.replace("head =", "draft ="), "draft-head: draft: is not its own"),
        (SMALL.replace("[1, 2]", "[100]"), "draft_length: is 100 of a speculative run"),
        (SMALL.replace("[0.5]", "[1.5]"), "forced_acceptance: is 1.5"),
        (SMALL.replace('draft = "same"', ""), "speculative: draft: is missing"),
        (SMALL.replace("canvases", "skips"), "canvas: skips: is not its own"),
        (SMALL.replace("canvases = [8]", ""), "canvas: is 0"),
        (
            SMALL.replace('"same"', '"same"\ndraft_format = "4bit"'),
            "draft_format: changes nothing where",
        ),
    ],
)
def test_what_is_wrong_with_a_plan_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        planned_runs(read_plan(written(tmp_path, text)))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


GIVEN: dict[str, Any] = {
    "draft": "llama-3.2-1b",
    "draft_format": "4bit",
    "draft_lengths": (2,),
    "acceptances": (0.5,),
    "skips": (0.25,),
    "ngrams": (3,),
    "batches": (4,),
    "canvases": (8,),
    "head": "qwen3.5-4b-mtp",
    "head_format": "bf16",
    "blocks": (32,),
    "answers": (64,),
    "steps": (8,),
    "committed": (4.0,),
    "thresholds": (0.9,),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_field_of_another_strategy_is_refused(strategy: str) -> None:
    own = {name: GIVEN[name] for name in FIELDS[strategy]}
    check_own(PlannedArm(strategy=strategy, **own))
    others = {name: value for name, value in GIVEN.items() if name not in own}
    assert {"strategy", *own, *others} == {each.name for each in fields(PlannedArm)}
    for name, value in others.items():
        with pytest.raises(InputError, match=f"^{strategy}: {name}: is not its own; leave it out"):
            check_own(PlannedArm(strategy=strategy, **own, **{name: value}))


def test_no_such_plan() -> None:
    with pytest.raises(InputError, match="plan nowhere: no such file or directory; give a plan"):
        read_plan("nowhere")
