# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

import mlx.core as mx
import pytest

from calibrate.decode import decode, decode_plain, decode_speculative, speculation
from calibrate.decoding.loops import arm
from calibrate.decoding.start import Start, filled
from calibrate.networks import Network
from calibrate.run_settings import Settings
from model.errors import InputError
from tests.calibrate.decoding.networks import LLAMA, PROMPT, QWEN3_MOE, network

PLAIN = Settings(strategy="plain")
SLIDING = LLAMA | {"sliding_window": 32, "layer_types": ["sliding_attention", "full_attention"] * 3}


@pytest.fixture(scope="module")
def llama() -> Network:
    return network(LLAMA)


class TestKeptCaches:
    @pytest.mark.parametrize("config", [LLAMA, QWEN3_MOE, SLIDING], ids=["llama", "moe", "window"])
    def test_runs_from_them_are_the_runs_from_the_prompt_again_and_again(
        self, config: dict[str, object]
    ) -> None:
        target = network(config)
        expected = decode_plain(target, PROMPT, 12).output
        start = Start(PROMPT)
        start.read(target)
        for settings in (
            PLAIN,
            Settings(strategy="prompt-lookup", draft_length=2, ngram=2),
            PLAIN,
            Settings(strategy="canvas", canvas=4),
            PLAIN,
        ):
            run = decode(arm(target, settings), start, 12)
            assert settings.canvas or run.output == expected

    def test_two_networks_keep_theirs(self, llama: Network) -> None:
        other = network(LLAMA, seed=3)
        start = Start(PROMPT)
        for each in (llama, other):
            start.read(each)
        run = decode(arm(llama, speculation(other, 2), other), start, 20)
        assert run.output == decode_speculative(llama, other, PROMPT, 20, 2).output
        start.forget(other)
        assert not start.holds(other)
        assert start.holds(llama)

    def test_one_token_needs_no_cache(self, llama: Network) -> None:
        start = Start((3,))
        start.fill(llama)
        assert decode(arm(llama, PLAIN), start, 8).output == decode_plain(llama, (3,), 8).output


class TestFilledCaches:
    def test_they_have_the_shape_of_those_that_read_the_prompt(self, llama: Network) -> None:
        caches = filled(llama, 300)
        assert caches is not None
        start = Start([1] * 301)
        start.read(llama)
        for one, other in zip(caches, start.caches(llama), strict=True):
            assert one.offset == other.offset == 300
            assert one.keys.shape == other.keys.shape
            assert one.keys.dtype == other.keys.dtype
            assert float(mx.std(one.keys_and_values()[0])) == pytest.approx(1.0, rel=0.1)

    def test_a_run_says_so(self, llama: Network) -> None:
        start = Start([1] * 50)
        start.fill(llama)
        run = decode(arm(llama, PLAIN), start, 8)
        assert run.context_filled
        assert run.context_tokens == 50
        assert not decode_plain(llama, PROMPT, 4).context_filled

    def test_other_kinds_of_caches_read_the_prompt(self) -> None:
        sliding = network(SLIDING)
        assert filled(sliding, 10) is None
        start = Start(PROMPT)
        start.fill(sliding)
        assert not start.filled
        assert (
            decode(arm(sliding, PLAIN), start, 8).output == decode_plain(sliding, PROMPT, 8).output
        )


class TestBatchAndCanvas:
    @pytest.mark.parametrize("kept", [False, True])
    def test_the_first_sequence_of_a_batch_is_plain_decoding(
        self, llama: Network, kept: bool
    ) -> None:
        start = Start(PROMPT)
        if kept:
            start.read(llama)
        run = decode(arm(llama, Settings(strategy="batch", batch=3)), start, 20)
        plain = decode_plain(llama, PROMPT, 20)
        assert run.output == plain.output
        assert len(run.round_s) == 19
        assert run.tokens_per_s == pytest.approx(3.0 / run.typical_round_s)

    def test_every_canvas_pass_meets_the_same_cache(self, llama: Network) -> None:
        """Were a pass to stay in the cache, the same rows would give other tokens."""
        run = decode(arm(llama, Settings(strategy="canvas", canvas=4)), Start(PROMPT), 6)
        rows = mx.arange(4)
        expected: list[int] = []
        for _ in range(6):
            logits = llama.model(mx.concatenate([mx.array(PROMPT), rows])[None])[0, len(PROMPT) :]
            rows = mx.argmax(logits, axis=-1)
            expected.append(int(rows[0]))
        assert list(run.output) == expected

    def test_a_canvas_beyond_what_the_network_takes(self, llama: Network) -> None:
        made = arm(llama, Settings(strategy="canvas", canvas=4090))
        with pytest.raises(InputError, match="are beyond the 4096 that llama takes"):
            decode(made, Start(PROMPT), 6)
