# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import mlx.core as mx
import pytest
from mlx.utils import tree_map
from mlx_lm.generate import speculative_generate_step

from calibrate import decode as decode_module
from calibrate.decode import (
    Pace,
    decode,
    decode_plain,
    decode_speculative,
    time_rounds,
)
from calibrate.decoding.loops import arm
from calibrate.decoding.lossless import compare_tokens
from calibrate.decoding.start import Start
from calibrate.decoding.streams import Arrivals
from calibrate.host_witness import MOST_WAIT_S, HostWitness
from calibrate.networks import Network, random_network
from calibrate.run_record import Run
from calibrate.run_settings import Settings
from model.errors import InputError

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": 4096,
    "tie_word_embeddings": False,
}
RECURRENT: dict[str, object] = {
    "model_type": "mamba2",
    "num_heads": 4,
    "head_dim": 32,
    "vocab_size": 4096,
    "hidden_size": 64,
    "intermediate_size": 128,
    "state_size": 16,
    "num_hidden_layers": 1,
    "layer_norm_epsilon": 1e-5,
    "conv_kernel": 4,
    "n_groups": 1,
    "use_bias": False,
    "use_conv_bias": True,
    "tie_word_embeddings": True,
    "time_step_limit": [0.0, 1e9],
    "time_step_rank": "auto",
    "ssm_state_size": 16,
}
PROMPT = (7, 11, 13, 17)


@pytest.fixture(scope="module")
def target() -> Network:
    return random_network(LLAMA, "fp32", name="target")


@pytest.fixture(scope="module")
def stranger() -> Network:
    """A network that knows nothing of the target."""
    return random_network(LLAMA, "fp32", seed=1, name="stranger")


@pytest.fixture(scope="module")
def relative(target: Network) -> Network:
    """The target with noise on its weights: it agrees now and then."""
    near = random_network(LLAMA, "fp32", name="relative")
    mx.random.seed(3)

    def blurred(weight: mx.array) -> mx.array:
        return weight + 0.05 / 8 * mx.random.normal(weight.shape)  # their own spread is 1/8

    near.model.update(tree_map(blurred, target.model.parameters()))
    mx.eval(near.model.parameters())
    return near


def decode_awaited(
    network: Network, prompt: Sequence[int], tokens: int, pace: Pace | None = None
) -> Run:
    return decode(arm(network, Settings(strategy="awaited")), Start(prompt), tokens, pace)


class Clock:
    """Seconds that pass only when somebody lets them."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Rows:
    """A module that notes how many rows each of its passes has."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.seen: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def __call__(self, tokens: mx.array, **rest: Any) -> mx.array:
        self.seen.append(tokens.shape[1])
        return self._module(tokens, **rest)


class TestTimeRounds:
    """What is timed, on a stream that is planted."""

    def planted(self, clock: Clock, *rounds: tuple[float, int]) -> Arrivals:
        """Rounds of (seconds, accepted); between two tokens of one round passes a millisecond."""
        for number, (seconds, accepted) in enumerate(rounds):
            clock.now += seconds - 0.001 * accepted
            for _ in range(accepted):
                yield number, True
                clock.now += 0.001
            yield number, False

    def test_the_first_round_is_left_out_and_the_others_add_up(self) -> None:
        clock = Clock()
        stream = self.planted(clock, (30.0, 2), (1.0, 0), (2.0, 1), (4.0, 2))
        round_s, accepted, output = time_rounds(stream, 9, Pace(clock=clock))
        assert round_s == pytest.approx([1.0, 2.0, 4.0])
        assert accepted == [0, 1, 2]
        assert output == [0, 0, 0, 1, 2, 2, 3, 3, 3]

    def test_the_round_that_reaches_the_end_is_whole_and_the_last(self) -> None:
        clock = Clock()
        stream = self.planted(clock, (30.0, 0), (1.0, 1), (2.0, 3), (4.0, 3))
        round_s, accepted, output = time_rounds(stream, 4, Pace(clock=clock))
        assert round_s == pytest.approx([1.0, 2.0])
        assert accepted == [1, 3]
        assert len(output) == 7

    def test_progress_counts_up_to_what_is_wanted(self) -> None:
        seen: list[tuple[int, int]] = []
        stream = self.planted(Clock(), (1.0, 1), (1.0, 1), (1.0, 1))
        pace = Pace(clock=Clock(), progress=lambda done, wanted: seen.append((done, wanted)))
        time_rounds(stream, 5, pace)
        assert seen == [(2, 5), (4, 5), (5, 5)]


class TestPlain:
    def test_each_token_is_the_best_one_after_those_before(self, target: Network) -> None:
        run = decode_plain(target, PROMPT, 6)
        tokens = [*PROMPT, *run.output]
        logits = target.model(mx.array([tokens[:-1]]))[0, len(PROMPT) - 1 :]
        assert list(run.output) == mx.argmax(logits, axis=-1).tolist()

    def test_the_record_says_what_was_run(self, target: Network) -> None:
        run = decode_plain(target, PROMPT, 6)
        assert (run.strategy, run.target, run.target_format) == ("plain", "target", "fp32")
        assert (run.target_weights, run.draft, run.draft_length) == ("random", "", 0)
        assert (run.context_tokens, run.tokens, len(run.round_s)) == (4, 6, 5)
        assert run.matches_plain is None
        assert run.peak_memory_bytes >= target.total_bytes
        assert run.date.endswith("+00:00")
        assert run.id != decode_plain(target, PROMPT, 6).id

    @pytest.mark.parametrize("name", ["bf16", "4bit", "mxfp4"])
    def test_every_format_decodes(self, name: str) -> None:
        assert len(decode_plain(random_network(LLAMA, name), PROMPT, 4).output) == 4

    def test_a_recurrent_network_decodes(self) -> None:
        assert len(decode_plain(random_network(RECURRENT, "4bit"), PROMPT, 4).output) == 4

    def test_the_time_before_and_after_the_steady_rounds_is_not_counted(
        self, target: Network
    ) -> None:
        ticks = iter([50.0, 51.0, 53.0, 57.0])
        run = decode_plain(target, PROMPT, 4, Pace(clock=lambda: next(ticks)))
        assert run.round_s == (1.0, 2.0, 4.0)


class TestAwaited:
    def test_the_tokens_are_those_of_plain_decoding(self, target: Network) -> None:
        awaited, plain = (run(target, PROMPT, 12) for run in (decode_awaited, decode_plain))
        assert awaited.output == plain.output
        assert awaited.strategy == "awaited"

    @pytest.mark.parametrize(("run", "per_pass"), [(decode_awaited, 1), (decode_plain, 0)])
    def test_each_pass_is_waited_for(
        self,
        target: Network,
        run: Callable[..., Run],
        per_pass: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        waits: list[int] = []
        wait: Any = mx.eval

        def counted(*arrays: Any) -> None:
            waits.append(1)
            wait(*arrays)

        monkeypatch.setattr(mx, "eval", counted)
        run(target, PROMPT, 4, Pace(warm_up=False))
        short = len(waits)
        run(target, PROMPT, 14, Pace(warm_up=False))
        assert len(waits) - 2 * short == 10 * per_pass


class TestSpeculative:
    @pytest.mark.parametrize("draft_length", [1, 2, 4])
    def test_the_target_as_its_own_draft_is_always_right(
        self, target: Network, draft_length: int
    ) -> None:
        run = decode_speculative(target, target, PROMPT, 24, draft_length)
        assert set(run.accepted) == {draft_length}
        assert run.tokens_per_pass == draft_length + 1
        assert run.accepted_fraction == 1.0
        assert run.acceptance_by_position == (1.0,) * draft_length

    def test_a_stranger_is_almost_never_right(self, target: Network, stranger: Network) -> None:
        run = decode_speculative(target, stranger, PROMPT, 24, 3)
        assert run.tokens_per_pass < 1.1
        assert (run.draft, run.draft_format, run.draft_length) == ("stranger", "fp32", 3)

    @pytest.mark.parametrize("draft_length", [1, 2, 4])
    def test_greedy_speculation_loses_nothing(
        self, target: Network, relative: Network, stranger: Network, draft_length: int
    ) -> None:
        plain = decode_plain(target, PROMPT, 40)
        for draft in (relative, stranger, target):
            run = decode_speculative(target, draft, PROMPT, 40, draft_length)
            assert compare_tokens(plain, run) is None
            assert len(run.output) == 40

    def test_a_relative_is_sometimes_right(self, target: Network, relative: Network) -> None:
        run = decode_speculative(target, relative, PROMPT, 40, 2)
        assert run.accepted_fraction is not None
        assert 0.1 < run.accepted_fraction < 0.95

    @pytest.mark.parametrize("tokens", [6, 7, 8, 9, 21])
    def test_the_accounts_are_those_of_mlx_lms_own_stream(
        self, target: Network, relative: Network, tokens: int
    ) -> None:
        run = decode_speculative(target, relative, PROMPT, tokens, 3)
        stream = speculative_generate_step(
            mx.array(PROMPT), target.model, relative.model, num_draft_tokens=3, max_tokens=200
        )
        rounds: list[list[int]] = [[]]
        for token, _, from_draft in stream:
            rounds[-1].append(int(token))
            if not from_draft:
                if sum(len(each) for each in rounds) >= tokens:
                    break
                rounds.append([])
        stream.close()
        assert run.accepted == tuple(len(each) - 1 for each in rounds[1:])
        assert run.output == tuple(token for each in rounds for token in each)[:tokens]
        assert len(run.round_s) == len(rounds) - 1
        assert run.drafted == 3 * (len(rounds) - 1)

    def test_every_shape_of_pass_is_warm_before_the_clock_starts(
        self, target: Network, stranger: Network
    ) -> None:
        big, small = Rows(target.model), Rows(stranger.model)
        networks = replace(target, model=big), replace(stranger, model=small)
        warm: list[set[int]] = []

        def clock() -> float:
            warm.append(set(small.seen))
            return float(len(warm))

        decode_speculative(*networks, PROMPT, 12, 3, Pace(clock=clock))
        assert {1, 2} <= warm[0]
        assert 4 in big.seen
        small.seen.clear()
        decode_speculative(*networks, PROMPT, 12, 3, Pace(clock=clock, warm_up=False))
        assert 2 not in small.seen


class TestWitness:
    """What the record says of the host and of the first round, which is not listed."""

    def test_the_host_is_timed_before_and_after_the_rounds(
        self, target: Network, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        works_s = iter([0.001, 0.002])
        monkeypatch.setattr(decode_module, "host_work_s", lambda: next(works_s))
        assert decode_plain(target, PROMPT, 4).host_work_s == (0.001, 0.002)

    def test_the_rounds_wait_for_a_quiet_host(self, target: Network) -> None:
        clock = Clock()
        slow_until = 0.0

        def sleep(seconds: float) -> None:
            clock.now += seconds

        host = HostWitness(lambda: 2.0 if clock.now < slow_until else 1.0, clock, sleep)
        slow_until = clock.now + 3.0
        decode_plain(target, PROMPT, 4, Pace(host=host))
        assert 103.0 <= clock.now < 103.1
        slow_until = math.inf
        begun = clock.now
        decode_plain(target, PROMPT, 4, Pace(host=host))
        assert clock.now - begun == pytest.approx(MOST_WAIT_S, abs=0.1)


class TestCompareTokens:
    @pytest.mark.parametrize(
        ("one", "other", "expected"),
        [((1, 2, 3), (1, 2, 3), None), ((1, 2, 3), (1, 9, 3), 1), ((1, 2), (1, 2, 3), None)],
    )
    def test_the_first_difference(
        self,
        target: Network,
        one: tuple[int, ...],
        other: tuple[int, ...],
        expected: int | None,
    ) -> None:
        run = decode_plain(target, PROMPT, 2)
        plain, speculative = (replace(run, tokens=len(o), output=o) for o in (one, other))
        assert compare_tokens(plain, speculative) == expected


class TestRefusals:
    @pytest.mark.parametrize(
        ("prompt", "tokens", "said"),
        [
            ((), 8, "prompt: has no tokens"),
            (
                (3, 4096),
                8,
                "prompt token 4096: is not in the vocabulary; target has tokens 0 to",
            ),
            ((-1, 3), 8, "prompt token -1"),
            (PROMPT, 1, "1 tokens: may all come in the first round; give 2 at least"),
        ],
    )
    def test_a_request_that_cannot_be_run(
        self, target: Network, prompt: tuple[int, ...], tokens: int, said: str
    ) -> None:
        for run in (decode_plain, decode_awaited):
            with pytest.raises(InputError) as caught:
                run(target, prompt, tokens)
            assert said in str(caught.value)

    def test_as_many_tokens_as_one_round_may_have(self, target: Network) -> None:
        with pytest.raises(InputError, match="give 6 at least"):
            decode_speculative(target, target, PROMPT, 5, 4)
        assert decode_speculative(target, target, PROMPT, 6, 4).accepted == (4,)

    def test_no_draft_tokens(self, target: Network) -> None:
        with pytest.raises(InputError, match="draft_length: is 0 of a speculative run"):
            decode_speculative(target, target, PROMPT, 8, 0)

    def test_another_vocabulary(self, target: Network) -> None:
        small = random_network(LLAMA | {"vocab_size": 64}, "fp32", name="small")
        with pytest.raises(InputError, match="draft small: has 64 tokens and target has 4096"):
            decode_speculative(target, small, PROMPT, 8, 2)

    def test_a_state_that_cannot_go_back(self, target: Network) -> None:
        recurrent = random_network(RECURRENT, "fp32", name="recurrent")
        for pair in ((target, recurrent), (recurrent, target)):
            with pytest.raises(InputError, match="recurrent: has a state that cannot be rolled"):
                decode_speculative(*pair, PROMPT, 8, 2)

    def test_a_window_that_fills(self, target: Network) -> None:
        kinds = ["sliding_attention", "full_attention"]
        config = LLAMA | {"sliding_window": 32, "layer_types": kinds}
        sliding = random_network(config, "fp32", name="sliding")
        with pytest.raises(InputError, match="rolled back once its window of 32"):
            decode_speculative(target, sliding, PROMPT, 24, 2)
        assert set(decode_speculative(sliding, sliding, PROMPT, 20, 2).accepted) == {2}


def test_memory_is_wired_while_decoding(target: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a Mac mlx-lm does so, and without it a large network is many times slower."""
    entered: list[bool] = []
    resident = decode_module.resident

    def watched() -> Any:
        entered.append(True)
        return resident()

    monkeypatch.setattr(decode_module, "resident", watched)
    decode_plain(target, PROMPT, 3)
    assert entered == [True]
