# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten

from calibrate.decode import decode_plain
from calibrate.environment import read_environment
from calibrate.networks import Network, activation_dtype, load_network, random_network
from calibrate.random_weights import EMBEDDED
from model.errors import InputError
from model.network.weight_format import FORMAT_NAMES, weight_format

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": 160,
    "tie_word_embeddings": False,
}
MIXTURE: dict[str, object] = LLAMA | {
    "model_type": "qwen3_moe",
    "head_dim": 16,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "moe_intermediate_size": 64,
    "norm_topk_prob": True,
    "rope_theta": 10000.0,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}
LAYER = [(64, 64), (32, 64), (32, 64), (64, 64), (128, 64), (128, 64), (64, 128)]
MATRICES = [(160, 64), (160, 64), *LAYER, *LAYER]
NORMS = 5 * 64
ACTIVATION = activation_dtype(read_environment().device)


def parameters(network: Network) -> dict[str, Any]:
    return dict(tree_flatten(network.model.parameters()))


def logits(network: Network) -> mx.array:
    return network.model(mx.array([[1, 2, 3, 4]])).astype(mx.float32)


def spread(values: mx.array) -> float:
    return float(values.std().item())  # pyright: ignore[reportArgumentType]


def matrix_values(part: Any) -> mx.array:
    if "scales" not in part:
        return part.weight.astype(mx.float32)
    how = {"group_size": part.group_size, "bits": part.bits, "mode": part.mode}
    values = mx.dequantize(part.weight, part.scales, part.get("biases"), **how)
    return values.astype(mx.float32)


def test_activations_are_wide_on_the_processor_alone() -> None:
    assert activation_dtype("cpu") == mx.float32
    assert activation_dtype("metal") == activation_dtype("cuda") == mx.bfloat16


@pytest.mark.parametrize("name", [*FORMAT_NAMES, "4bit-g32", "3bit-g32", "8bit-s32"])
class TestEveryFormat:
    def test_bytes_are_those_of_the_format(self, name: str) -> None:
        network = random_network(LLAMA, name)
        form = weight_format(name)
        narrow = not name.endswith("-s32") and mx.float32 != ACTIVATION
        stored = form.with_scale_bits(16 if narrow else 32)
        norm_bytes = form.bits // 8 if form.family == "float" else 2 if narrow else 4
        expected = sum(stored.matrix_bytes(*shape) for shape in MATRICES) + NORMS * norm_bytes
        assert network.total_bytes == expected
        assert (network.format_name, network.weights) == (name, "random")
        assert (network.name, network.vocab_size) == ("llama", 160)

    def test_logits_are_finite_and_of_order_one(self, name: str) -> None:
        values = logits(random_network(LLAMA, name))
        assert mx.isfinite(values).all().item()
        assert 0.1 < spread(values) < 4

    def test_weights_are_centred_and_keep_the_size_of_activations(self, name: str) -> None:
        values = matrix_values(random_network(LLAMA, name).model.lm_head)
        assert 0.3 < spread(values) * 8 < 2  # times the root of 64 inputs
        assert (mx.abs(values.mean()) < 0.03 * values.std()).item()


class TestRandomWeights:
    def test_depth_does_not_blow_activations_up(self) -> None:
        network = random_network(LLAMA | {"num_hidden_layers": 60}, "2bit")
        assert 0.1 < spread(logits(network)) < 4

    @pytest.mark.parametrize("name", ["fp32", "4bit", "mxfp4"])
    def test_the_seed_decides_the_weights(self, name: str) -> None:
        first, again, other = (random_network(LLAMA, name, seed) for seed in (1, 1, 2))
        assert mx.array_equal(logits(first), logits(again))
        assert not mx.array_equal(logits(first), logits(other))

    @pytest.mark.parametrize("name", ["fp32", "4bit"])
    def test_no_two_matrices_or_rows_are_equal(self, name: str) -> None:
        layers = random_network(LLAMA, name).model.layers
        weights = [layer.self_attn.q_proj.weight for layer in layers]
        assert not mx.array_equal(*weights)
        assert len({tuple(row) for row in weights[0].tolist()}) == 64

    def test_all_bits_of_packed_weights_are_used(self) -> None:
        words = random_network(LLAMA, "4bit").model.lm_head.weight
        ones = [((words >> bit) & 1).astype(mx.float32).mean().item() for bit in range(32)]
        assert all(0.4 < share < 0.6 for share in ones)

    def test_a_text_does_not_repeat_one_token(self) -> None:
        """A token decides what follows, so a text of 4,096 runs into a cycle after about 80."""
        network = random_network(LLAMA | {"vocab_size": 4096}, "fp32")
        assert len(set(decode_plain(network, [1, 2, 3, 4], 40).output)) > 30

    @pytest.mark.parametrize("name", ["fp32", "4bit"])
    def test_embeddings_are_larger_unless_they_are_the_head(self, name: str) -> None:
        own, tied = (
            random_network(LLAMA | {"tie_word_embeddings": is_tied}, name).model.model.embed_tokens
            for is_tied in (False, True)
        )
        assert 0.6 < spread(matrix_values(own)) / EMBEDDED < 1.5
        assert 0.3 < spread(matrix_values(tied)) * 8 < 2  # times the root of 64 inputs

    def test_norms_are_one(self) -> None:
        for name, array in parameters(random_network(LLAMA, "4bit")).items():
            if name.endswith("norm.weight"):
                assert (array == 1).all().item(), name

    def test_nothing_is_held_twice(self) -> None:
        config = LLAMA | {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 6}
        mx.reset_peak_memory()
        before = mx.get_active_memory()
        network = random_network(config, "bf16")
        assert mx.get_peak_memory() - before < 1.3 * network.total_bytes

    def test_experts_are_drawn_and_the_router_keeps_its_eight_bits(self) -> None:
        network = random_network(MIXTURE, "4bit")
        mixture = network.model.layers[0].mlp
        assert (mixture.gate.bits, mixture.switch_mlp.up_proj.bits) == (8, 4)
        assert mx.isfinite(logits(network)).all().item()
        assert len(decode_plain(network, [1, 2], 3).output) == 3

    def test_a_matrix_that_groups_do_not_divide_stays_whole(self) -> None:
        network = random_network(LLAMA | {"intermediate_size": 96}, "4bit")
        layer = network.model.layers[0].mlp
        assert "scales" not in layer.down_proj
        assert "scales" in layer.up_proj


class TestRefusals:
    @pytest.mark.parametrize(
        ("config", "name", "said"),
        [
            (LLAMA, "7bit", "format '7bit'"),
            ({"model_type": "lama"}, "4bit", "model_type 'lama': cannot be built"),
            ({}, "4bit", "model_type None: cannot be built"),
            ({"model_type": "llama"}, "4bit", "missing"),
        ],
    )
    def test_what_mlx_lm_cannot_build(
        self, config: Mapping[str, object], name: str, said: str
    ) -> None:
        with pytest.raises(InputError) as caught:
            random_network(config, name)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_too_large_is_refused_before_anything_is_allocated(self) -> None:
        # Three matrices of 28672 x 8192 and four smaller ones in each of 1000 layers.
        huge = LLAMA | {
            "hidden_size": 8192,
            "intermediate_size": 28672,
            "num_hidden_layers": 1000,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
        }
        before = mx.get_active_memory()
        with pytest.raises(InputError, match=r"giant in bf16: needs 171\d\.\d\d GB and \d+"):
            random_network(huge, "bf16", name="giant")
        assert mx.get_active_memory() - before < 2**20


def save(folder: Path, network: Network, config: Mapping[str, object]) -> None:
    """A model folder as Hugging Face lays it out, with a tokenizer of bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = {word: i for i, word in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet())[:160])}
    tokenizer: Any = Tokenizer(models.BPE(vocab=words, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "!"}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind))
    (folder / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(folder / "model.safetensors"), parameters(network))


class TestLocalFolder:
    @pytest.mark.parametrize(
        ("name", "stated"),
        [
            ("fp32", {"torch_dtype": "float32"}),
            ("4bit-g32", {"quantization": {"group_size": 32, "bits": 4}}),
            ("mxfp4", {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}),
        ],
    )
    def test_a_saved_network_comes_back(
        self, tmp_path: Path, name: str, stated: dict[str, object]
    ) -> None:
        network = random_network(LLAMA, name)
        save(tmp_path, network, LLAMA | stated)
        loaded = load_network(tmp_path)
        assert mx.allclose(logits(loaded), logits(network), atol=1e-2)
        assert (loaded.name, loaded.weights) == (tmp_path.name, "real")
        assert (loaded.format_name, loaded.vocab_size) == (name, 160)
        assert loaded.total_bytes == network.total_bytes
        tokenizer: Any = loaded.tokenizer
        assert tokenizer.decode(tokenizer.encode("abc")) == "abc"

    def test_scales_take_the_type_that_the_device_is_quick_with(self, tmp_path: Path) -> None:
        network = random_network(LLAMA, "4bit")
        network.model.set_dtype(mx.bfloat16)
        save(tmp_path, network, LLAMA | {"quantization": {"group_size": 64, "bits": 4}})
        loaded = load_network(tmp_path)
        assert loaded.model.lm_head.scales.dtype == ACTIVATION

    def test_nothing_is_downloaded(self) -> None:
        with pytest.raises(InputError, match=r"mlx-community.*config.json: cannot be read"):
            load_network("mlx-community/Llama-3.2-1B-Instruct-4bit")

    @pytest.mark.parametrize(
        ("config", "said"),
        [
            ("{", "cannot be read (JSONDecodeError"),
            ("[]", "is not a JSON object"),
            ("{}", "has no model*.safetensors"),
        ],
    )
    def test_a_folder_without_what_is_needed(self, tmp_path: Path, config: str, said: str) -> None:
        (tmp_path / "config.json").write_text(config)
        with pytest.raises(InputError) as caught:
            load_network(tmp_path)
        assert said in str(caught.value)

    def test_code_that_comes_with_a_model_is_not_run(self, tmp_path: Path) -> None:
        save(tmp_path, random_network(LLAMA, "fp32"), LLAMA | {"model_file": "evil.py"})
        (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
        with pytest.raises(InputError, match="cannot be loaded"):
            load_network(tmp_path)

    def test_weights_that_are_not_the_configs(self, tmp_path: Path) -> None:
        save(tmp_path, random_network(LLAMA, "fp32"), LLAMA | {"hidden_size": 128})
        with pytest.raises(InputError, match="cannot be loaded") as caught:
            load_network(tmp_path)
        assert "\n" not in str(caught.value)
