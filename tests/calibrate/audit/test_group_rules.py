"""Rules on rows beside others: planted violations, and rows that only look alike."""

from __future__ import annotations

from calibrate.audit.rules import Flag, audit
from tests.calibrate.audit.rows import batch, drafted, plain


def flagged(flags: tuple[Flag, ...]) -> set[tuple[str, str]]:
    return {(flag.rule.partition("/")[2], flag.id) for flag in flags}


class TestBaselines:
    def test_a_baseline_far_below_another_tool_is_found(self) -> None:
        slow = drafted(baseline_tok_s=9.1, decode_tok_s=13.65, runtime="MTPLX")
        assert flagged(audit((plain(), slow))) == {("slow-baseline", "d")}

    def test_sessions_differ_by_less(self) -> None:
        near = drafted(baseline_tok_s=10.5, decode_tok_s=15.75, runtime="MTPLX")
        assert audit((plain(), near)) == ()

    def test_other_formats_chips_and_contexts_are_no_measure(self) -> None:
        slow = {"baseline_tok_s": 9.1, "decode_tok_s": 13.65}
        for other in (
            plain(quant="4bit mix"),
            plain(chip="M4", mem_bandwidth_gb_s_nominal=120),
            plain(target_model="Other-8B"),
        ):
            assert audit((other, drafted(**slow))) == ()
        assert audit((plain(), drafted(**slow, context_tokens=8192))) == ()
        assert audit((plain(), drafted(**slow, task="4096 generated tokens"))) == ()

    def test_a_baseline_of_other_kernels_is_found(self) -> None:
        foreign = drafted(baseline_tok_s=12.34, decode_tok_s=18.5)
        theirs = plain(runtime="llama.cpp (Metal)", decode_tok_s=12.34)
        assert flagged(audit((theirs, foreign))) == {("foreign-baseline", "d")}
        same_kernels = plain(runtime="Rapid-MLX", decode_tok_s=12.34)
        assert audit((same_kernels, foreign)) == ()


class TestSeries:
    def test_a_hot_repeat_is_found_and_the_cold_one_is_not(self) -> None:
        hot = plain(id="hot", decode_tok_s=8.1)
        assert flagged(audit((plain(), hot))) == {("slow-repeat", "hot")}

    def test_a_longer_context_is_no_repeat(self) -> None:
        assert audit((plain(), plain(id="long", decode_tok_s=8.1, context_tokens=16_384))) == ()

    def test_a_stream_of_a_batch_is_no_faster_than_one_alone(self) -> None:
        fast = batch(decode_tok_s=56.0, speedup="")
        assert flagged(audit((plain(), fast))) == {("stream-above-plain", "b")}
        assert audit((plain(), batch(decode_tok_s=48.4, speedup=""))) == ()


class TestCopies:
    ORIGINAL = plain(prefill_tok_s=181.37, decode_tok_s=12.34)

    def test_the_same_digits_on_another_chip_are_a_copy(self) -> None:
        copy = plain(
            id="c",
            chip="M4",
            mem_bandwidth_gb_s_nominal=120,
            prefill_tok_s=181.37,
            decode_tok_s=12.34,
        )
        assert flagged(audit((self.ORIGINAL, copy))) == {("copy", "p"), ("copy", "c")}

    def test_a_repeat_in_its_own_source_is_none(self) -> None:
        again = plain(id="c", context_tokens=256, prefill_tok_s=181.37, decode_tok_s=12.34)
        assert audit((self.ORIGINAL, again)) == ()

    def test_few_digits_agree_by_chance(self) -> None:
        assert audit((plain(), plain(id="c", source_url_or_repo="two"))) == ()

    def test_a_copy_with_one_number_changed_is_found(self) -> None:
        numbers = {"decode_tok_s": 18.123, "baseline_tok_s": 12.082, "speedup": ""}
        first = drafted(**numbers)
        altered = drafted(
            **numbers, id="c", source_url_or_repo="two", tokens_per_pass=2.1, trust="low"
        )
        found = flagged(audit((first, altered)))
        assert found == {("altered-copy", "d"), ("altered-copy", "c")}


class TestScaling:
    """Qwen2.5-7B and 14B in 4 bits: 1.9 times the bytes, 1.7 times the layers."""

    def series(self, *rates: float, context: int = 128) -> tuple[Flag, ...]:
        names = ("Qwen2.5-Coder-7B-Instruct-4bit", "Qwen2.5-Coder-14B-Instruct-4bit")
        return audit(
            tuple(
                plain(id=name, target_model=name, quant="4bit", decode_tok_s=rate,
                      target_params_b="", target_active_params_b="", context_tokens=tokens)
                for name, rate, tokens in zip(names, rates, (128, context), strict=True)
            )
        )  # fmt: skip

    def test_a_larger_network_that_loses_more_than_its_size_is_found(self) -> None:
        larger = "Qwen2.5-Coder-14B-Instruct-4bit"
        assert flagged(self.series(21.0, 7.1)) == {("slower-than-scaling", larger)}

    def test_as_much_slower_as_it_is_larger_is_right(self) -> None:
        assert self.series(21.0, 10.8) == ()

    def test_a_longer_context_is_no_measure(self) -> None:
        assert self.series(21.0, 7.1, context=2048) == ()


def test_flags_come_in_the_order_of_the_runs_and_name_both_kinds() -> None:
    runs = (drafted(id="1", acceptance=60), plain(id="2", decode_tok_s=1.0), plain(id="3"))
    flags = audit(runs)
    assert [flag.id for flag in flags] == sorted(flag.id for flag in flags)
    assert {flag.rule.partition("/")[0] for flag in flags} == {"impossible", "suspicious"}
