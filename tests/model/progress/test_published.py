"""Published progress: the table is whole and sourced, numbers convert only where they may."""

from __future__ import annotations

import re
from statistics import median

import pytest

from model.errors import InputError
from model.progress.published import TaskProgress, published_progress
from model.progress.published_rows import PublishedRow, published_rows, read_row
from model.progress.vocabulary import MEASURES, METHODS, TASKS, Measure, Method, Task

ROWS = {row.id: row for row in published_rows()}

CELLS = {
    "id": "X1",
    "method": "MTP head",
    "target": "t",
    "draft": "d",
    "task": "prose",
    "draft_length": "4",
    "skip_fraction": "",
    "acceptance": "0.5904",
    "acceptance_def": "accepted/drafted",
    "tokens_per_pass": "",
    "hardware": "",
    "source": "s",
    "locator": "",
}


def row(**cells: str) -> PublishedRow:
    return read_row(CELLS | cells)


class TestTable:
    """What is shipped."""

    def test_every_row_has_a_name_a_source_and_a_number(self) -> None:
        assert len(ROWS) == len(published_rows()) >= 250
        for entry in ROWS.values():
            assert re.fullmatch(r"[AR]\d{4}", entry.id)
            assert entry.source
            # SWIFT states a range, which is kept as no number.
            assert entry.stated or len(entry.acceptance) > 1 or entry.id == "A0372"

    def test_sources_can_be_looked_up(self) -> None:
        for entry in ROWS.values():
            assert not re.search(r"stored|file id|seeds|guruswami", entry.source + entry.locator)

    def test_the_vocabulary_has_the_words_of_the_table_and_no_others(self) -> None:
        assert {entry.method_text for entry in ROWS.values()} == set(METHODS)
        assert {entry.task_text for entry in ROWS.values()} == set(TASKS)
        # Definitions are checked when a row is read; each is also used.
        assert {entry.measure for entry in ROWS.values()} == set(Measure)
        assert set(MEASURES.values()) == set(Measure) - {Measure.TOKENS_PER_PASS}

    def test_a_refusal_can_list_all_tasks(self) -> None:
        assert len(Task) <= 12

    def test_tokens_per_pass_are_possible(self) -> None:
        for entry in ROWS.values():
            tokens, k = entry.tokens_per_pass, entry.draft_length
            assert tokens is None or tokens >= 1.0
            assert tokens is None or k is None or tokens <= k + 1


class TestConversion:
    """alpha = 0.8 and k = 4 by each of its names, and what never converts."""

    @pytest.mark.parametrize(
        "cells",
        [
            {"acceptance": "0.5904", "acceptance_def": "accepted/drafted"},
            {"acceptance": "2.3616", "acceptance_def": "accepted per round"},
            {"acceptance": "", "acceptance_def": "", "tokens_per_pass": "3.3616"},
            {
                "acceptance": "0.7025226",  # 2.3616 / 3.3616
                "acceptance_def": next(
                    text for text, measure in MEASURES.items() if measure is Measure.DRAFT_SHARE
                ),
            },
            {
                "acceptance": "0.8 / 0.64 / 0.512 / 0.4096",
                "acceptance_def": "per depth position",
            },
        ],
    )
    def test_each_measure_leads_to_the_same_acceptance(self, cells: dict[str, str]) -> None:
        acceptance = row(**cells).by_position
        assert acceptance is not None
        assert acceptance.by_position == pytest.approx([0.8] * len(acceptance.by_position))
        assert acceptance.tokens_per_pass(4) == pytest.approx(3.3616)

    @pytest.mark.parametrize(
        "cells",
        [
            {"draft_length": ""},
            {"acceptance_def": ""},
            {"acceptance_def": "as stated"},
            {"acceptance_def": "LM Studio 'accepted draft tokens'"},
            {"acceptance": "0.5-0.6"},
            {"acceptance": "~0.6"},
            {"tokens_per_pass": "3.0"},  # 0.59 of four drafted would be 3.36
            {"acceptance": "", "tokens_per_pass": "5.1"},
            {"acceptance": "", "tokens_per_pass": "0.9"},
        ],
    )
    def test_what_does_not_say_enough_is_kept_and_not_converted(
        self, cells: dict[str, str]
    ) -> None:
        assert row(**cells).by_position is None

    def test_shares_by_depth_are_not_rates(self) -> None:
        """0.867 / 0.717 / 0.627 of all rounds: E = 1 + their sum, and 0.717 is 82.7 % of 0.867."""
        acceptance = ROWS["A0428"].by_position
        assert acceptance is not None
        assert acceptance.by_position == pytest.approx([0.867, 0.82699, 0.87448], abs=1e-5)
        assert acceptance.tokens_per_pass(3) == pytest.approx(3.211)

    def test_a_head_that_drafts_fewer_than_allowed_does_not_convert(self) -> None:
        """gemma-4-12b, k = 7: 68.3 % of drafted and 3.934 tokens per pass; of 7 it were 5.78."""
        assert ROWS["R1640"].tokens_per_pass == 3.934
        assert ROWS["R1640"].by_position is None

    @pytest.mark.parametrize(
        ("cells", "line"),
        [
            ({"method": "Magic"}, "X1: method 'Magic': is not in the vocabulary"),
            ({"task": "poems"}, "X1: task 'poems': is not in the vocabulary"),
            ({"acceptance_def": "good"}, "X1: acceptance_def 'good': is not in the vocabulary"),
            ({"draft_length": "auto"}, "X1: draft_length 'auto': is not a number"),
            ({"acceptance": "59.04"}, "X1: acceptance 59.04: is above 1"),
        ],
    )
    def test_a_cell_that_is_not_what_its_column_holds(
        self, cells: dict[str, str], line: str
    ) -> None:
        with pytest.raises(InputError, match=line):
            row(**cells)


def every_answer() -> list[TaskProgress]:
    answers: list[TaskProgress] = []
    for method in Method:
        for task in Task:
            for draft_length in (None, 1, 3, 8):
                try:
                    answers.append(published_progress(method, task, draft_length))
                except InputError:
                    continue
    return answers


class TestProgress:
    """One number for a method and a task, and what it came from."""

    def test_every_answer_says_what_it_came_from(self) -> None:
        answers = every_answer()
        assert {answer.method for answer in answers} == set(Method) - {Method.LAYER_SKIP}
        for answer in answers:
            spread = answer.tokens_per_pass
            assert 1.0 <= spread.lowest <= spread.median <= spread.highest
            assert spread.pairs == len({entry.pair for entry in answer.rows})
            assert answer.sources
            for entry in answer.rows:
                assert (entry.method, entry.task) == (answer.method, answer.task)
            assert Measure.UNLABELLED not in dict(answer.stated)

    def test_acceptance_gives_the_tokens_per_pass_back(self) -> None:
        for answer in every_answer():
            k = answer.draft_length
            if k is None:
                assert answer.acceptance is None
                continue
            for acceptance, tokens in (
                (answer.lowest_acceptance, answer.tokens_per_pass.lowest),
                (answer.acceptance, answer.tokens_per_pass.median),
                (answer.highest_acceptance, answer.tokens_per_pass.highest),
            ):
                assert acceptance is not None
                assert acceptance.tokens_per_pass(k) == pytest.approx(tokens, rel=1e-6)

    def test_a_pair_counts_once(self) -> None:
        """Chat with k = 2: five heads, 2.45 2.15 2.38 1.99 stated, and one drafted 7 (3.77)."""
        progress = published_progress("block-drafter", "chat", 2)
        assert progress.tokens_per_pass.pairs == 5
        stated = dict(progress.stated)[Measure.TOKENS_PER_PASS]
        assert stated.median == median([2.45, 2.15, 2.38, 1.99, 3.77])
        assert progress.draft_lengths == (2, 7)
        assert progress.tokens_per_pass.lowest == pytest.approx(1.99)

    def test_machines_do_not_vote(self) -> None:
        """One head and prompt on three chips is one pair: the median of its three runs."""
        progress = published_progress("mtp-head", "structured", 3)
        enumerations = [entry for entry in progress.rows if entry.task_text == "enumeration"]
        assert len({entry.hardware for entry in enumerations}) == 3
        assert progress.tokens_per_pass.pairs == 2
        assert progress.tokens_per_pass.highest == pytest.approx(3.99)

    def test_tasks_differ_as_they_do(self) -> None:
        """Heads and block drafters commit more on math and code than on prose and chat."""

        def typical(method: str, task: str) -> float:
            return published_progress(method, task, 3).tokens_per_pass.median

        assert typical("mtp-head", "structured") > typical("mtp-head", "code")
        assert typical("mtp-head", "code") > typical("mtp-head", "writing")
        assert typical("block-drafter", "math") > typical("block-drafter", "chat")

    def test_longer_than_anything_published_is_called_extrapolated(self) -> None:
        assert not published_progress("mtp-head", "structured", 3).extrapolated
        assert published_progress("mtp-head", "structured", 4).extrapolated

    def test_prompt_lookup_has_tokens_per_pass_and_no_acceptance(self) -> None:
        """Spec-Bench states no draft length; 1.73 and 1.75 of one target are one pair."""
        progress = published_progress("prompt-lookup", "mixed")
        assert progress.tokens_per_pass.pairs == 4
        assert progress.tokens_per_pass.highest == pytest.approx(1.74)
        assert "github:hemingkx/Spec-Bench@fd2c1cd7" in progress.sources

    @pytest.mark.parametrize(
        ("asked", "line"),
        [
            (("mtp", "code"), "method 'mtp': is not known; did you mean mtp-head?"),
            (("mtp-head", "poetry"), "task 'poetry': is not known; known: chat, code, knowledge"),
            (("mtp-head", "maths"), r"task 'maths': is not known; did you mean math"),
            (
                ("draft-model", "code", 2),
                "draft-model on task code: has no published row with a labelled acceptance and "
                "its draft length; tasks that have one: mixed; or give a number of your own",
            ),
            (
                ("prompt-lookup", "mixed", 2),
                "prompt-lookup: has no published row that says its acceptance",
            ),
            (("layer-skip", "code"), "layer-skip: has no published row .* give one of your own"),
            (("block-diffusion", "math", 2), "means nothing for block diffusion"),
            (("mtp-head", "code", 0), "draft length 0: is not one that is priced; give 1 to 64"),
        ],
    )
    def test_what_nobody_published_is_refused_in_one_line(
        self, asked: tuple[str, str, int], line: str
    ) -> None:
        with pytest.raises(InputError, match=line):
            published_progress(*asked)
