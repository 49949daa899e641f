"""Runs on real weights: nothing is lost, and what a draft that skips layers gets right.

SmolLM2-135M on a CPU, 2026-11-30 (`calibrate/data/runs/NOTES.md`). Tokens and counts alone are
read; the machine was busy with other things.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from calibrate.run_file import read_runs
from calibrate.run_record import Run

FOLDER = Path(str(files("calibrate") / "data/runs"))
LOSSLESS = ("batch", "layer-skip", "prompt-lookup", "speculative")


def runs_of(name: str) -> list[Run]:
    return list(read_runs(FOLDER / f"smollm2-{name}.jsonl"))


@pytest.mark.parametrize("strategy", LOSSLESS)
def test_two_hundred_tokens_of_three_prompts_are_those_of_plain_decoding(strategy: str) -> None:
    runs = runs_of("lossless")
    plain = {run.context_tokens: run.output for run in runs if run.strategy == "plain"}
    made = [run for run in runs if run.strategy == strategy]
    assert {run.context_tokens for run in made} == set(plain)
    assert len(plain) == 3
    for run in made:
        assert len(run.output) == 200
        assert run.output == plain[run.context_tokens]
        assert run.matches_plain
        assert run.target_weights == "real"


def test_the_24_settings_of_the_article_lose_nothing_either() -> None:
    made = [run for run in runs_of("layer-skip") if run.strategy == "layer-skip"]
    assert len(made) == 24
    assert all(run.matches_plain for run in made)


def test_half_of_the_layers_get_next_to_nothing_right() -> None:
    """A 30-layer network without its middle half is no draft of itself, in either format."""
    for run in runs_of("layer-skip"):
        if len(run.skipped_mlp) == 15:
            assert run.accepted_fraction is not None
            assert run.accepted_fraction < 0.06


def test_an_eighth_of_the_layers_is_the_best_share_to_skip_here() -> None:
    by_share: dict[int, list[float]] = {}
    for run in runs_of("layer-skip"):
        if run.strategy == "layer-skip" and run.draft_length == 4:
            by_share.setdefault(len(run.skipped_mlp), []).append(run.tokens_per_pass)
    least = {share: min(each) for share, each in by_share.items()}
    assert max(least, key=lambda share: least[share]) == 4


def test_choosing_by_similarity_is_worse_than_the_middle_here() -> None:
    """At an equal saving of time; `--select similarity` skips more attention and fewer MLPs."""
    pairs = [run for run in runs_of("selection") if run.strategy == "layer-skip"]
    middle = [run for run in pairs if run.skipped_attention == run.skipped_mlp]
    chosen = [run for run in pairs if run.skipped_attention != run.skipped_mlp]
    assert len(middle) == len(chosen) == 4
    for ours, theirs in zip(middle, chosen, strict=True):
        assert len(theirs.skipped_attention) > len(ours.skipped_attention)
        assert theirs.tokens_per_pass < ours.tokens_per_pass
        assert ours.matches_plain
        assert theirs.matches_plain
