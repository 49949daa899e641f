"""mlx-vlm's own denoising loops, watched: what is counted, and that watching changes nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from calibrate.decoding.expert_choice import distinct_experts, noted_choices, switches
from calibrate.environment import read_environment
from calibrate.known_plans import Plans
from calibrate.networks import Network
from calibrate.run_settings import Settings
from calibrate.vlm.attention_plans import of_process
from calibrate.vlm.diffusion import open_diffusion, run_diffusion
from calibrate.vlm.library import part
from model.errors import InputError
from tests.calibrate.vlm.tiny import GEMMA, LLADA, MASK, needs_mlx_vlm, written

pytestmark = needs_mlx_vlm
BLOCK, PROMPT = 8, tuple(range(1, 17))
FAMILIES = {"llada": LLADA, "gemma": GEMMA}


@pytest.fixture(scope="module", params=list(FAMILIES))
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Network:
    config = written(tmp_path_factory.mktemp("tiny"), request.param, FAMILIES[request.param])
    return open_diffusion(config, "fp32", "auto")


def settings(**changes: Any) -> Settings:
    return Settings(strategy="diffusion", block=BLOCK, **changes)


def writes_last(network: Network) -> bool:
    """LLaDA 2's loop writes its last block to the cache, which nothing reads any more."""
    return network.model.config.model_type == "llada2_moe"


def test_a_schedule_takes_its_passes_and_one_to_write_each_block(network: Network) -> None:
    run = run_diffusion(network, PROMPT, 20, settings(steps=4))
    blocks = ((2, 2, 2, 2, 0) * 3)[: 15 if writes_last(network) else 14]
    assert run.commits == blocks
    assert (run.tokens, len(run.output)) == (20, 20)
    assert run.committed_per_pass == 2.0
    assert run.tokens_per_pass == 20 / len(blocks)
    assert run.library.startswith("mlx-vlm ")


def test_every_round_is_a_pass_by_its_own_clock(network: Network) -> None:
    """The clock ticks each time it is read: at the start of every pass and at the end."""
    ticks = count()
    run = run_diffusion(network, PROMPT, 16, settings(steps=2), clock=lambda: float(next(ticks)))
    assert set(run.round_s) == {1.0}
    assert len(run.round_s) == len(run.commits)


def test_a_coin_fills_every_block(network: Network) -> None:
    run = run_diffusion(network, PROMPT, 16, settings(committed=2.5, seed=1))
    assert sum(run.commits) == 16
    assert max(run.commits) == 3
    assert run_diffusion(network, PROMPT, 16, settings(committed=2.5, seed=1)).output == run.output


def test_random_weights_are_sure_of_one_token_a_pass(network: Network) -> None:
    run = run_diffusion(network, PROMPT, BLOCK, settings(threshold=0.99))
    assert run.commits[:BLOCK] == (1,) * BLOCK


def test_a_threshold_of_nothing_fixes_all_at_once(network: Network) -> None:
    assert run_diffusion(network, PROMPT, BLOCK, settings(threshold=0.0)).commits[0] == BLOCK


def test_a_prompt_that_fills_no_block_is_read_with_the_answer(network: Network) -> None:
    run = run_diffusion(network, PROMPT[:5], 11, settings(steps=BLOCK))
    assert len(run.output) == 11
    assert sum(run.commits) == (11 if writes_last(network) else 16)


def test_watching_llada_changes_no_token(tmp_path: Path) -> None:
    network = open_diffusion(written(tmp_path, "llada", LLADA), "fp32", "auto")
    run = run_diffusion(network, PROMPT, 16, settings())
    own = network.model.language_model.generate(
        mx.array([PROMPT]), block_length=BLOCK, steps=BLOCK, gen_length=16, eos_id=-1
    )
    assert tuple(own[0].tolist()) == run.output
    assert MASK not in run.output


def test_the_experts_of_each_pass_are_counted(network: Network) -> None:
    """One call of each layer a pass, the prompt's passes before those of the answer."""
    run = run_diffusion(network, PROMPT, BLOCK, settings(steps=4))
    places = switches(network.model)
    with noted_choices(places) as choices:
        run_diffusion(network, PROMPT, BLOCK, settings(steps=4))
    # Warmed up, timed, and counted: the last of the three is what is counted.
    last = choices[-len(places) * len(run.commits) :]
    assert run.distinct_experts == distinct_experts(last, BLOCK) > 2.0
    assert len(choices) % len(places) == 0


def noted(network: Network, answer: int) -> tuple[tuple[int, bool], ...]:
    """What each pass fixed, and whether it met a new shape."""
    run = run_diffusion(network, PROMPT, answer, settings(steps=2))
    return tuple(zip(run.commits, run.new_shapes, strict=True))


def test_passes_that_meet_new_shapes_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of blocks at 16, 24 and 32 the warm-up met the first two, and wrote them to less room."""
    network = open_diffusion(written(tmp_path, "llada", LLADA), "fp32", "auto")
    monkeypatch.setattr("calibrate.vlm.attention_plans.PLANNED_TYPES", (mx.float32,))
    monkeypatch.setattr("calibrate.vlm.attention_plans.of_process", cache(lambda: Plans(99)))
    known, new = (4, False), (4, True)
    assert noted(network, 24) == (known, known, (0, True)) * 2 + (new, known, (0, False))
    # One more block: all others are known, but the room for all of them is new.
    assert noted(network, 32) == (known, known, (0, True)) * 3 + (new, known, (0, False))
    # A block that fills its cache is written as it is denoised.
    assert noted(network, 8) == (known, known, (0, False))


def test_where_nothing_is_planned_nothing_is_noted(network: Network) -> None:
    assert run_diffusion(network, PROMPT, 16, settings(steps=2)).new_shapes == ()


@pytest.mark.parametrize(("switch", "plans"), [("1", True), ("0", False)])
def test_nothing_is_planned_where_cudnn_does_not_attend(
    monkeypatch: pytest.MonkeyPatch, switch: str, plans: bool
) -> None:
    variables = (("MLX_CUDA_USE_CUDNN_SDPA", switch),)
    cuda = replace(read_environment(), device="cuda", mlx_variables=variables)
    monkeypatch.setattr("calibrate.vlm.attention_plans.read_environment", lambda: cuda)
    assert (of_process.__wrapped__() is not None) == plans


def test_a_block_longer_than_the_canvas_is_one_line(tmp_path: Path) -> None:
    network = open_diffusion(written(tmp_path, "gemma", GEMMA), "4bit", "auto")
    long = Settings(strategy="diffusion", block=32)
    with pytest.raises(InputError, match=r"block of 32: is longer than the canvas .* up to 16"):
        run_diffusion(network, PROMPT, 32, long)


def test_the_watched_function_is_put_back(tmp_path: Path) -> None:
    loop = part("generate.diffusion")
    before = loop._diffusion_confidence_transfer_mask
    network = open_diffusion(written(tmp_path, "gemma", GEMMA), "4bit", "auto")
    run_diffusion(network, PROMPT, BLOCK, settings(steps=1))
    assert loop._diffusion_confidence_transfer_mask is before
