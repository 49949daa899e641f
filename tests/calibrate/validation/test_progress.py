"""The progress of published runs: each definition converts as it counts, or is refused."""

from __future__ import annotations

import pytest

from calibrate.published.evidence import shipped_runs
from calibrate.published.refusal import Reason, Refusal
from calibrate.validation.progress import COUNTED, acceptance_of, drafted_length, measure_of
from model.progress.acceptance import Acceptance
from model.progress.vocabulary import MEASURES, Measure
from tests.calibrate.published.published_run import SPECULATIVE, published

SHARE_OF_OUTPUT = (
    "1 - cycles/tokens (share of emitted tokens that were drafted), NOT per-draft acceptance"
)


def tokens(**changed: str) -> float:
    run = published(SPECULATIVE | {"tokens_per_pass": ""} | changed)
    acceptance = acceptance_of(run)
    assert isinstance(acceptance, Acceptance), str(acceptance)
    return acceptance.tokens_per_pass(run.draft_length or 0)


def test_tokens_per_pass_are_given_back() -> None:
    assert tokens(k="4", tokens_per_pass="3.2") == pytest.approx(3.2)
    assert tokens(k="4", tokens_per_pass="5.0") == pytest.approx(5.0)


def test_tokens_per_pass_go_before_an_acceptance() -> None:
    assert tokens(k="4", tokens_per_pass="3.2", acceptance="0.9") == pytest.approx(3.2)


def test_an_accepted_fraction_is_of_the_drafted_tokens() -> None:
    # 0.55 of 4 drafted tokens and one of the target's own: 1 + 2.2
    found = tokens(k="4", acceptance="0.55", acceptance_def="accepted/drafted")
    assert found == pytest.approx(3.2)


def test_a_share_of_the_output_is_of_all_tokens() -> None:
    # 3 of 4 tokens were drafted: 4 a pass
    found = tokens(k="7", acceptance="0.75", acceptance_def=SHARE_OF_OUTPUT)
    assert found == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("definition", "measure"),
    [
        ("accepted / drafted tokens", Measure.ACCEPTED_FRACTION),
        ("accepted draft tokens over proposed", Measure.ACCEPTED_FRACTION),
        ("n_accept/n_drafted (server log)", Measure.ACCEPTED_FRACTION),
        ("share of generated tokens that were drafted", Measure.DRAFT_SHARE),
        ("accepted/drafted behind a confidence gate", Measure.UNLABELLED),
        ("accepted/drafted (range over prompts)", Measure.UNLABELLED),
        ("accepted drafts per round", Measure.UNLABELLED),
        ("draft acceptance", Measure.UNLABELLED),
        ("accept EWMA at depth 0", Measure.UNLABELLED),
    ],
)
def test_a_definition_of_other_words_is_read_or_unlabelled(
    definition: str, measure: Measure
) -> None:
    assert measure_of(definition) is measure


def test_shares_by_position_are_of_all_rounds() -> None:
    cells = {"acceptance": "0.9 / 0.72", "acceptance_def": "per depth position"}
    found = acceptance_of(published(SPECULATIVE | {"tokens_per_pass": "", "k": "2"} | cells))
    assert isinstance(found, Acceptance)
    assert found.by_position == pytest.approx((0.9, 0.8))
    too_few = acceptance_of(published(SPECULATIVE | {"tokens_per_pass": "", "k": "3"} | cells))
    assert isinstance(too_few, Refusal)
    assert too_few.reason is Reason.UNLABELLED_ACCEPTANCE


def test_a_first_token_of_the_prompt_is_not_a_ninth_of_eight() -> None:
    assert tokens(k="4", tokens_per_pass="5.02") == pytest.approx(5.0)


def test_the_most_that_llama_cpp_drafts_is_not_what_it_drafted() -> None:
    cells = {"tokens_per_pass": "", "acceptance": "0.5", "acceptance_def": "accepted/drafted"}
    run = published(SPECULATIVE | cells, runtime="llama.cpp (Metal)")
    found = acceptance_of(run)
    assert isinstance(found, Refusal)
    assert found.reason is Reason.NO_DRAFT_LENGTH
    head = acceptance_of(published(SPECULATIVE | cells, runtime="llama.cpp", strategy="mtp"))
    assert isinstance(head, Acceptance)


def test_a_mean_length_follows_from_what_was_accepted() -> None:
    # (2.37 - 1) / 0.436 = 3.14
    stated = {"k": "", "tokens_per_pass": "2.37", "acceptance": "0.436"}
    run = published(SPECULATIVE | stated, acceptance_def="accepted/drafted")
    assert drafted_length(run) == 3
    assert drafted_length(published(SPECULATIVE | stated)) is None
    assert drafted_length(published(SPECULATIVE | stated), 2) == 2


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"k": ""}, Reason.NO_DRAFT_LENGTH),
        ({"k": "0"}, Reason.NO_DRAFT_LENGTH),
        ({}, Reason.NO_PROGRESS),
        ({"acceptance": "0.8"}, Reason.UNLABELLED_ACCEPTANCE),
        ({"acceptance": "0.8", "acceptance_def": "as stated"}, Reason.UNLABELLED_ACCEPTANCE),
        ({"acceptance": "0.8", "acceptance_def": "who knows"}, Reason.UNLABELLED_ACCEPTANCE),
        (
            {"acceptance": "0.90-1.00", "acceptance_def": "accepted/drafted"},
            Reason.UNLABELLED_ACCEPTANCE,
        ),
        ({"acceptance": "1.2", "acceptance_def": "accepted/drafted"}, Reason.IMPOSSIBLE_PROGRESS),
        ({"acceptance": "0.9", "acceptance_def": SHARE_OF_OUTPUT}, Reason.IMPOSSIBLE_PROGRESS),
        ({"tokens_per_pass": "3.1"}, Reason.IMPOSSIBLE_PROGRESS),  # of two drafts and one more
        ({"tokens_per_pass": "0.9"}, Reason.IMPOSSIBLE_PROGRESS),
        (
            {
                "tokens_per_pass": "2.5",
                "acceptance_def": "derived (tokens_per_pass-1)/beam_length; only for beam width 1",
            },
            Reason.TREE_DRAFT,
        ),
    ],
)
def test_what_is_no_progress_is_refused(changed: dict[str, str], reason: Reason) -> None:
    found = acceptance_of(published(SPECULATIVE | {"tokens_per_pass": ""} | changed))
    assert isinstance(found, Refusal)
    assert found.reason is reason


def test_every_converted_definition_is_one_that_was_published() -> None:
    """A definition that nobody writes would be a slip of the pen."""
    written = {run.acceptance_def for run in shipped_runs()}
    assert {*COUNTED} - {*MEASURES} <= written


@pytest.mark.parametrize(
    ("tokens_per_pass", "acceptance", "definition", "drafted"),
    [
        # (2.05 - 1) / 0.35 = 3.0 of the 8 that were asked for.
        ("2.05", "0.35", "accepted/drafted", 3),
        ("3.2", "0.55", "accepted/drafted", 4),
        # 2 % short of 4 is rounding.
        ("3.156", "0.55", "accepted/drafted", 4),
        # Another measure says nothing of the drafted tokens.
        ("2.05", "0.35", SHARE_OF_OUTPUT, 8),
        ("2.05", "0", "accepted/drafted", 8),
        ("2.05", "0.9 / 0.8", "accepted/drafted", 8),
    ],
)
def test_a_draft_that_is_cut_short_is_as_long_as_it_was(
    tokens_per_pass: str, acceptance: str, definition: str, drafted: int
) -> None:
    asked = "4" if drafted == 4 else "8"
    stated = {"k": asked, "tokens_per_pass": tokens_per_pass, "acceptance": acceptance}
    run = published(SPECULATIVE | stated | {"acceptance_def": definition})
    assert drafted_length(run) == drafted
