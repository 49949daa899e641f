# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

from itertools import product
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models.cache import make_prompt_cache

from calibrate.decode import Pace, decode, decode_plain
from calibrate.decoding.layer_skip import self_draft
from calibrate.decoding.loops import arm
from calibrate.decoding.similarity import similarities
from calibrate.decoding.start import Start
from calibrate.networks import Network, random_network
from calibrate.run_settings import layer_skip
from model.errors import InputError
from model.network.sublayers import Half, Sublayer
from tests.calibrate.decoding.networks import GEMMA2, LLAMA, PROMPT, QWEN3_MOE, network


def halves(*layers: int, kinds: tuple[Half, ...] = tuple(Half)) -> frozenset[Sublayer]:
    return frozenset(Sublayer(layer=layer, half=half) for layer, half in product(layers, kinds))


@pytest.fixture(scope="module")
def llama() -> Network:
    return network(LLAMA)


def logits_of(model: Any, tokens: tuple[int, ...]) -> mx.array:
    return model(mx.array([tokens]), cache=make_prompt_cache(model))


class TestSelfDraft:
    def test_it_is_the_network_without_those_layers(self, llama: Network) -> None:
        """A network built with four of the six layers gives the same logits."""
        short = random_network(LLAMA | {"num_hidden_layers": 4}, "fp32", name="short")
        kept = [llama.model.layers[index] for index in (0, 1, 4, 5)]
        for own, theirs in zip(short.model.layers, kept, strict=True):
            own.update(theirs.parameters())
        short.model.model.embed_tokens.update(llama.model.model.embed_tokens.parameters())
        short.model.lm_head.update(llama.model.lm_head.parameters())
        draft = self_draft(llama, halves(2, 3))
        expected = logits_of(short.model, PROMPT)
        assert mx.allclose(logits_of(draft.model, PROMPT), expected, atol=1e-5)
        assert not mx.allclose(logits_of(llama.model, PROMPT), expected, atol=1e-2)

    @pytest.mark.parametrize("half", list(Half))
    def test_a_single_half_adds_nothing(self, llama: Network, half: Half) -> None:
        """The same as a network whose output matrix of that half is zero."""
        silent = network(LLAMA)
        block = silent.model.layers[2]
        last = block.self_attn.o_proj if half is Half.MIXER else block.mlp.down_proj
        last.weight = mx.zeros_like(last.weight)
        draft = self_draft(llama, halves(2, kinds=(half,)))
        expected = logits_of(silent.model, PROMPT)
        assert mx.allclose(logits_of(draft.model, PROMPT), expected, atol=1e-5)

    def test_it_shares_every_weight_and_leaves_the_target_as_it_was(self, llama: Network) -> None:
        before = logits_of(llama.model, PROMPT)
        mx.eval(before)
        held = mx.get_active_memory()
        draft = self_draft(llama, halves(1, 2))
        assert mx.get_active_memory() == held
        logits_of(draft.model, PROMPT)
        assert mx.array_equal(logits_of(llama.model, PROMPT), before)
        assert len(draft.model.make_cache()) == 4

    def test_the_caches_are_those_of_kept_attention(self, llama: Network) -> None:
        draft = self_draft(llama, halves(1, 4, kinds=(Half.MIXER,)) | halves(2, kinds=(Half.MLP,)))
        caches = draft.model.make_cache()
        assert len(caches) == 4
        draft.model(mx.array([PROMPT]), cache=caches)
        assert {cache.offset for cache in caches} == {len(PROMPT)}

    @pytest.mark.parametrize("skipped", [halves(6), frozenset(halves(-1))])
    def test_a_layer_that_is_not_there(self, llama: Network, skipped: frozenset[Sublayer]) -> None:
        with pytest.raises(InputError, match="is not in llama; layers are numbered 0 to 5"):
            self_draft(llama, skipped)

    def test_all_of_it(self, llama: Network) -> None:
        with pytest.raises(InputError, match="leaves nothing to draft with"):
            self_draft(llama, halves(*range(6)))

    def test_blocks_that_are_no_pair(self) -> None:
        recurrent: dict[str, object] = {
            **{"model_type": "mamba2", "num_heads": 4, "head_dim": 32, "vocab_size": 512},
            **{"hidden_size": 64, "intermediate_size": 128, "state_size": 16},
            **{"num_hidden_layers": 2, "layer_norm_epsilon": 1e-5, "conv_kernel": 4},
            **{"n_groups": 1, "use_bias": False, "use_conv_bias": True},
            **{"tie_word_embeddings": True, "time_step_limit": [0.0, 1e9]},
            **{"time_step_rank": "auto", "ssm_state_size": 16},
        }
        with pytest.raises(InputError, match="mamba2: has a block 0 without self_attn"):
            self_draft(network(recurrent), halves(1))


class TestDecoding:
    @pytest.mark.parametrize(
        ("config", "skipped"),
        [
            (LLAMA, halves(2, 3)),
            (QWEN3_MOE, halves(2)),
            (GEMMA2, halves(1, kinds=(Half.MIXER,)) | halves(2, kinds=(Half.MLP,))),
        ],
        ids=["llama", "moe", "norms behind"],
    )
    def test_nothing_is_lost(self, config: dict[str, object], skipped: frozenset[Sublayer]) -> None:
        target = network(config)
        plain = decode_plain(target, PROMPT, 24, Pace(warm_up=False))
        made = arm(target, layer_skip(skipped, 3))
        run = decode(made, Start(PROMPT), 24, Pace(warm_up=False))
        assert run.output == plain.output
        assert run.settings.skipped == skipped

    def test_a_skipped_half_that_gave_nothing_anyway_is_always_right(self) -> None:
        target = network(LLAMA)
        down = target.model.layers[3].mlp.down_proj
        down.weight = mx.zeros_like(down.weight)
        settings = layer_skip(halves(3, kinds=(Half.MLP,)), 3)
        assert set(decode(arm(target, settings), Start(PROMPT), 24).accepted) == {3}


class TestSimilarities:
    def test_a_half_that_adds_nothing_changes_nothing(self) -> None:
        target = network(LLAMA)
        block = target.model.layers[3]
        block.mlp.down_proj.weight = mx.zeros_like(block.mlp.down_proj.weight)
        found = similarities(target, PROMPT)
        assert len(found) == 12
        assert found[Sublayer(layer=3, half=Half.MLP)] == pytest.approx(1.0, abs=1e-6)
        others = [
            value for each, value in found.items() if each != Sublayer(layer=3, half=Half.MLP)
        ]
        assert max(others) < 0.9999

    def test_the_first_attention_by_hand(self, llama: Network) -> None:
        found = similarities(llama, PROMPT)
        block, tokens = llama.model.layers[0], mx.array([PROMPT])
        x = llama.model.model.embed_tokens(tokens)
        after = x + block.self_attn(block.input_layernorm(x), mask="causal")
        inner = (x * after).sum(-1)
        cosines = inner / (mx.linalg.norm(x, axis=-1) * mx.linalg.norm(after, axis=-1))
        first = found[Sublayer(layer=0, half=Half.MIXER)]
        assert first == pytest.approx(float(cosines.mean()), abs=1e-5)
