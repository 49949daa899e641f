"""Options of `predict` that would change nothing, or contradict each other: each is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import tokroof
from model.commands.diffusion_options import EXAMPLES
from model.network.config.diffusion_lm import MODEL_TYPES
from model.network.target import load_target

LLAMA = ["predict", "llama-3.1-8b", "--format", "4bit"]
PAIR = [*LLAMA, "--draft", "llama-3.2-1b"]
QWEN = ["predict", "qwen3.5-4b", "--format", "4bit"]
DFLASH = [*QWEN, "--strategy", "draft-head", "--head", "qwen3.5-4b-dflash"]
EAGLE = [*LLAMA, "--strategy", "draft-head", "--head", "llama-3.1-8b-eagle3"]
EAGLE_TREE = [*EAGLE, "--beams", "3", "--draft-length", "4", "--tokens-per-pass", "3"]
LOOKUP = [*LLAMA, "--strategy", "prompt-lookup"]
LAYERS = [*LLAMA, "--strategy", "layer-skip"]
LLADA = ["predict", "llada-8b", "--format", "4bit", "--strategy", "diffusion"]
BLOCKS = [*LLADA, "--block", "32", "--answer", "64"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("option", "strategies"),
    [
        (["--batch", "4"], "one of speculative, draft-head, layer-skip, prompt-lookup, batch"),
        (["--task", "code"], "one of speculative, draft-head, layer-skip, prompt-lookup, diff"),
        (["--head", "llama-3.1-8b-eagle3"], "draft-head"),
        (["--head-format", "4bit"], "draft-head"),
        (["--beams", "3"], "draft-head"),
        (["--tree-rows", "9"], "draft-head"),
        (["--skip", "0.25"], "layer-skip"),
        (["--skip-attention", "3"], "layer-skip"),
        (["--skip-mlp", ""], "layer-skip"),
        (["--match", "0.5"], "prompt-lookup"),
        (["--block", "32"], "diffusion"),
        (["--steps", "8"], "diffusion"),
        (["--committed", "4"], "diffusion"),
        (["--answer", "64"], "diffusion"),
        (["--canvas", "64"], "diffusion"),
        (["--block-cache"], "diffusion"),
        (["--instead", "qwen3-4b"], "instead"),
    ],
)
def test_a_setting_of_another_strategy_is_refused(
    option: list[str], strategies: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = " ".join(option) if option[-1] else f"{option[0]} ''"
    assert tokroof.main([*LLAMA, *option]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(
        f"tokroof predict: {given}: changes nothing for --strategy plain; "
        f"leave it out, or ask for {strategies}"
    )
    assert (shown.err.count("\n"), shown.out) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([*PAIR, "--strategy", "plain"], "--draft llama-3.2-1b: changes nothing"),
        ([*LOOKUP, "--draft-format", "4bit"], "--draft-format 4bit: describes a draft"),
        ([*LLAMA, "--strategy", "all", "--draft-format", "4bit"], "--draft-format 4bit: describes"),
        ([*LLAMA, "--strategy", "batch", "--draft-length", "4"], "--draft-length 4: changes"),
        (["predict", "qwen3-4b", "--shared-experts", "0.5"], "qwen3-4b has no experts"),
        (["predict", "qwen3-30b-a3b", "--shared-experts", "0.5"], "0.5: changes nothing for"),
        ([*LLAMA, "--strategy", "plain,plain"], "strategy plain: is named twice"),
        ([*LLAMA, "--strategy", "plain,all"], "--strategy plain,all: 'all' stands alone"),
        ([*LLAMA, "--strategy", "batch", "--batch", "1"], "--batch 1: is plain decoding"),
        ([*LAYERS, "--skip", "0.01"], "--skip 0.01: skips none of the 32 layers"),
        (
            [*LOOKUP, "--acceptance", "0.5", "--acceptance-of", "prompt-lookup=0.6"],
            "--acceptance 0.5: is given beside --acceptance-of prompt-lookup; give either",
        ),
        (
            [*LOOKUP, *("--acceptance-of", "prompt-lookup=0.5") * 2],
            "--acceptance-of prompt-lookup=0.5: is a second one of prompt-lookup",
        ),
        (
            [*PAIR, "--acceptance", "0.5", "--task", "code"],
            "--task code: changes nothing where progress is given",
        ),
        (
            [*LLAMA, "--strategy", "all", "--draft-length", "4", "--tokens-per-pass", "3"],
            "--tokens-per-pass 3: could be of draft-head or layer-skip or prompt-lookup",
        ),
        ([*DFLASH, "--acceptance-of", "draft-head=0.9"], "give that of block-drafter"),
        (
            [*LLAMA, "--strategy", "all", "--acceptance-of", "block-drafter=0.9"],
            "give that of draft-head, layer-skip, prompt-lookup",
        ),
        (
            ["predict", "llama-2-7b", "--strategy", "all", "--acceptance-of", "draft-head=0.9"],
            "give that of layer-skip, prompt-lookup",
        ),
        ([*BLOCKS, "--steps", "8", "--committed", "4"], "--steps 8: says what --committed 4 says"),
        ([*BLOCKS, "--steps", "8", "--task", "math"], "--task math: changes nothing where"),
        (
            [*BLOCKS, "--steps", "8", "--canvas", "64", "--block-cache"],
            "--canvas 64: changes nothing with --block-cache",
        ),
        (
            [*LLADA, "--block", "32", "--answer", "4000", "--steps", "8"],
            "--answer 4000: is, behind 1024 tokens of context, beyond the 4096 tokens of llada-8b",
        ),
        ([*LLAMA, "--strategy", "diffusion"], "choose one that is, e.g. llada-8b or"),
        ([*EAGLE, "--tree-rows", "9"], "--tree-rows 9: changes nothing without several beams"),
        ([*EAGLE, "--beams", "1"], "--beams 1: is a chain, as it is without; give 2 or more"),
        ([*EAGLE, "--beams", "65"], "--beams 65: is out of range; give a whole number 1..64"),
        ([*EAGLE, "--beams", "3"], "add --draft-length K --tokens-per-pass X"),
        ([*EAGLE, "--beams", "3", "--tokens-per-pass", "2"], "tell; add --draft-length K"),
        ([*EAGLE, "--beams", "3", "--acceptance", "0.7"], "--acceptance 0.7: is of one draft"),
        ([*EAGLE, "--beams", "3", "--accepted-fraction", "0.7"], "0.7: is of one draft, not of"),
        ([*EAGLE, "--beams", "3", "--task", "chat"], "--task chat: is of one draft, not of"),
        ([*EAGLE, "--beams", "3", "--acceptance-of", "draft-head=0.7"], "=0.7: is of one draft"),
        ([*DFLASH, "--beams", "3"], "--beams 3: is of heads that draft token by token; qwen3.5"),
        (
            [*EAGLE, "--beams", "3", "--draft-length", "4", "--tokens-per-pass", "5.5"],
            "5.5 tokens per pass: is impossible with draft length 4; give a number in [1, 5]",
        ),
        (
            [*EAGLE_TREE, "--tree-rows", "6"],
            "6 rows of a tree: cannot hold 3 beams of 4 draft tokens; give a whole number from 7",
        ),
        (
            [*LLAMA, "--strategy", "instead", "--instead", "gemma-3-4b", "--kv-format", "8bit"],
            "--kv-format 8bit: does not apply to the sliding layers of gemma-3-4b",
        ),
    ],
)
def test_what_contradicts_or_changes_nothing_is_refused_in_a_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokroof.main(arguments) == 2
    shown = capsys.readouterr()
    assert line in shown.err
    assert (shown.err.count("\n"), shown.out) == (1, "")


def test_the_examples_of_diffusion_models_are_ones() -> None:
    assert {load_target(name, "4bit").architecture.model_type for name in EXAMPLES} <= MODEL_TYPES
