"""Trained heads in mlx-vlm's own rounds: lossless, forced by a coin, and refused in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.coin import Coin
from calibrate.decode import decode
from calibrate.decoding.start import Start
from calibrate.networks import Network
from calibrate.run_settings import Settings
from calibrate.vlm.heads import Head, check_pair, check_target, open_head
from calibrate.vlm.networks import open_network
from calibrate.vlm.rounds import head_arm, plain_arm
from model.errors import InputError
from tests.calibrate.vlm.tiny import HEADS, LLAMA, QWEN, TARGET_OF, needs_mlx_vlm, written

pytestmark = needs_mlx_vlm
PROMPT = (7, 11, 13, 17, 7, 11, 13, 5)


@pytest.fixture(scope="module", params=list(HEADS))
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Network, Head]:
    folder = tmp_path_factory.mktemp("tiny")
    target = written(folder, "target", TARGET_OF[request.param])
    head = written(folder, request.param, HEADS[request.param])
    return open_network(target, "fp32", "auto"), open_head(head, "fp32", "auto", target)


def settings(length: int, forced: float | None = None, seed: int = 0) -> Settings:
    return Settings(
        strategy="draft-head",
        draft="head",
        draft_format="fp32",
        draft_length=length,
        forced_acceptance=forced,
        seed=seed,
    )


def test_a_head_writes_what_its_target_does(pair: tuple[Network, Head]) -> None:
    target, head = pair
    plain = decode(plain_arm(target), Start(PROMPT), 10)
    run = decode(head_arm(target, head, settings(3)), Start(PROMPT), 10)
    assert run.output == plain.output
    assert len(run.output) == 10
    assert plain.library == run.library


def test_a_coin_accepts_what_it_says(pair: tuple[Network, Head]) -> None:
    target, head = pair
    run = decode(head_arm(target, head, settings(3, 0.6, seed=5)), Start(PROMPT), 24)
    coin = Coin(0.6, 5)
    # The first token comes of the prompt's pass, before any round.
    assert run.accepted == tuple(coin.accepted(3) for _ in run.accepted)
    assert len(set(run.accepted)) > 1


def test_full_acceptance_is_the_whole_draft_and_one(pair: tuple[Network, Head]) -> None:
    target, head = pair
    run = decode(head_arm(target, head, settings(2, 1.0)), Start(PROMPT), 12)
    assert run.tokens_per_pass == 3.0


@pytest.mark.parametrize("name", ["eagle3", "dflash"])
def test_a_target_whose_layers_are_not_read_is_refused_before_it_is_drawn(
    name: str, tmp_path: Path
) -> None:
    llama = written(tmp_path, "llama", LLAMA)
    head = open_head(written(tmp_path, name, HEADS[name]), "fp32", "auto", llama)
    with pytest.raises(InputError, match=rf"llama.json: cannot run {name} heads in mlx-vlm"):
        check_target(llama, head)
    check_target(written(tmp_path, "qwen", QWEN), head)


def test_a_target_that_hands_out_no_states_is_one_line(tmp_path: Path) -> None:
    qwen, llama = written(tmp_path, "qwen", QWEN), written(tmp_path, "llama", LLAMA)
    head = open_head(written(tmp_path, "mtp", HEADS["mtp"]), "fp32", "auto", qwen)
    with pytest.raises(InputError, match=r"cannot run mtp heads in mlx-vlm, which hands out no"):
        check_pair(open_network(llama, "fp32", "auto"), head)


def test_an_eagle_head_that_does_not_say_what_it_reads_is_one_line(tmp_path: Path) -> None:
    silent = {key: value for key, value in HEADS["eagle3"].items() if not key.startswith("eagle_")}
    qwen = written(tmp_path, "qwen", QWEN)
    head = open_head(written(tmp_path, "silent", silent), "fp32", "auto", qwen)
    with pytest.raises(InputError, match=r"reads 3 layers, and its config names \d; add eagle_aux"):
        check_pair(open_network(qwen, "fp32", "auto"), head)


def test_a_head_that_mlx_vlm_does_not_know_is_one_line(tmp_path: Path) -> None:
    target = written(tmp_path, "qwen", QWEN)
    with pytest.raises(
        InputError, match=r"'recurrent_drafting_drafter': is not among mlx-vlm's draft heads"
    ):
        open_head("vicuna-7b-v1.3-redrafter", "fp32", "auto", target)


def test_nothing_is_drawn_for_pictures(pair: tuple[Network, Head]) -> None:
    target, _ = pair
    assert target.model.vision_tower is None
    assert target.total_bytes < 2e6
