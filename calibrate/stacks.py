"""Whole decoder layers, decode loops and expert layers of real mlx-lm networks, as they run.

A pass is what mlx-lm does for one step: embedding, layers with their caches, norm, head, log
probabilities, and the most likely token of each row. The rows it appended to the caches are
trimmed again, so that every pass has the same context, and its tokens are the next pass's input.

Passes can be run in several modes, and the time per pass is then that of something else:

* *queued*: graphs submitted while the device was busy with something else; what the device takes
  for them alone, however long the host needs.
* *build*: Python builds the graphs and nothing runs; the host's first share.
* *pipelined*: graphs built ahead are submitted one after another without waiting; what the
  slower one of device and host takes. Of a network so narrow that the device has nothing to do
  it is called *submit*: the encoding of its kernels, the host's second share.
* *decode*: as mlx-lm's `generate_step`, the next pass is built and submitted before the last
  one's token is read.
* *awaited*: build, submit and wait, as every strategy must that looks at tokens before it goes
  on.
* *growing*: the same, but the rows stay in the caches, as they do in decoding: each pass meets a
  context of its own, for which some back ends plan their attention anew.
"""

# MLX's stubs leave some arguments untyped, those of `eval` among them.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import mlx.core as mx
from mlx_lm.models.cache import BatchKVCache, make_prompt_cache, trim_prompt_cache

from calibrate.chain import Chain, head_start, submission
from calibrate.head_start import KERNELS_AHEAD
from calibrate.mlx_device import activation_of, activations, cold_copies
from calibrate.networks import parameter_bytes, random_network
from calibrate.probe_network import MIXTURE, config_of
from calibrate.timing import LONGEST_CHAIN, Job
from model.network.weight_format import weight_format

SEED = 7
EXPERTS_KERNELS, LAYER_KERNELS, PASS_KERNELS = 20, 40, 20
"""Kernels that experts, a whole layer, and what is outside layers may take."""
MOST_GROWTH = 512
"""Tokens by which a growing context may grow before it starts again.

At two rows a pass that is more contexts than MLX's CUDA back end keeps plans for (the last 256;
mlx, `cuda/scaled_dot_product_attention.cpp`), so that those met again are new again. It is short
of the 1024 tokens from which Metal's attention may use another kernel.
"""


def random_model(config: Mapping[str, object], format_name: str) -> Any:
    """mlx-lm's module of a config, its random weights in memory."""
    return random_network(config, format_name, SEED).model


@final
class Passes:
    """A network with its caches filled to a context, taking the same pass again and again.

    Of one sequence a pass has `rows`; of several, side by side, it has one row each.
    """

    def __init__(
        self, network: Any, *, format_name: str, rows: int, context: int, sequences: int = 1
    ) -> None:
        self._network = network
        self._rows = rows
        self._context = context
        alone = sequences == 1
        self.caches: list[Any] = (
            make_prompt_cache(network)
            if alone
            else [BatchKVCache([0] * sequences) for _ in network.layers]
        )
        arguments = network.args
        shape = (sequences, arguments.num_key_value_heads, context, arguments.head_dim)
        dtype = activation_of(weight_format(format_name))
        for cache in self.caches:
            cache.update_and_fetch(*(mx.random.normal(shape).astype(dtype) for _ in range(2)))
        self._tokens = mx.arange(rows if alone else sequences) % arguments.vocab_size
        self._apart = None if alone else 1
        mx.eval(self._tokens, [cache.state[:2] for cache in self.caches])

    @property
    def longest_queue(self) -> int:
        """Passes that can wait for the device: as many kernels as MLX leaves under way."""
        return max(1, KERNELS_AHEAD // (LAYER_KERNELS * len(self.caches) + PASS_KERNELS))

    def advance(self, tokens: mx.array) -> mx.array:
        """Build one pass: the most likely token after each of `tokens`."""
        following = self._following(tokens)
        trim_prompt_cache(self.caches, self._rows)
        return following

    def _following(self, tokens: mx.array) -> mx.array:
        # One sequence of all tokens, or as many sequences of one token each.
        axis = self._apart or 0
        logits = self._network(mx.expand_dims(tokens, axis), cache=self.caches).squeeze(axis)
        return mx.argmax(logits - mx.logsumexp(logits, axis=-1, keepdims=True), axis=-1)

    def build(self, units: int) -> Job:
        """Only build passes. What was built is run afterwards, at the next preparation."""
        mx.eval(self._tokens)
        mx.synchronize()

        def job() -> None:
            for _ in range(units):
                self._tokens = self.advance(self._tokens)

        return job

    def _built(self, units: int) -> list[mx.array]:
        """The graphs of passes that follow each other."""
        mx.synchronize()
        passes = [self.advance(self._tokens)]
        while len(passes) < units:
            passes.append(self.advance(passes[-1]))
        return passes

    def queue(self, units: int) -> Job:
        """Passes that the device finds submitted already: what it takes for them alone.

        Raises:
            RuntimeError: the host cannot get so far ahead.
        """
        ahead = head_start()
        passes = None if ahead is None else ahead.submitted(lambda: self._built(units))
        if passes is None:
            raise RuntimeError("the host cannot get ahead of the device")
        return lambda: mx.eval(passes[-1])

    def submit(self, units: int) -> Job:
        """Passes built ahead and submitted without waiting."""
        return submission(self._built(units))

    def decode(self, units: int) -> Job:
        """Passes as plain decoding runs them: one ahead of the token that is read."""
        first = self.advance(self._tokens)
        mx.eval(first)
        mx.synchronize()

        def job() -> None:
            current = first
            for _ in range(units):
                following = self.advance(current)
                mx.async_eval(following)
                current.tolist()
                current = following
            mx.eval(current)

        return job

    def await_each(self, units: int) -> Job:
        """Passes of which each is waited for."""
        mx.synchronize()

        def job() -> None:
            tokens = self._tokens
            for _ in range(units):
                tokens = self.advance(tokens)
                mx.eval(tokens)

        return job

    def grow(self, units: int) -> Job:
        """Awaited passes whose rows stay in the caches, so that each meets a new context.

        A further job goes on from the context that the last one reached.
        """
        beyond = int(self.caches[0].offset) - self._context
        if beyond > MOST_GROWTH:
            trim_prompt_cache(self.caches, beyond)
        mx.synchronize()

        def job() -> None:
            tokens = self._tokens
            for _ in range(units):
                tokens = self._following(tokens)
                mx.eval(tokens)

        return job


@final
class Loop:
    """One of the ways in which `Passes` run, as a workload whose unit is a pass."""

    def __init__(self, passes: Passes, mode: str) -> None:
        self.longest = passes.longest_queue if mode == "queued" else LONGEST_CHAIN
        self.is_ahead = mode == "queued"
        self._way = {
            "build": passes.build,
            "submit": passes.submit,
            "queued": passes.queue,
            "pipelined": passes.submit,
            "decode": passes.decode,
            "awaited": passes.await_each,
            "growing": passes.grow,
        }[mode]

    def prepare(self, units: int) -> Job:
        """The job of `units` passes."""
        return self._way(units)


@final
class Experts:
    """Distinct mixture-of-experts layers of one format, as mlx-lm builds them for Qwen3 MoE."""

    def __init__(
        self, format_name: str, *, hidden: int, intermediate: int, num_experts: int, top_k: int
    ) -> None:
        form = weight_format(format_name)
        layer_bytes = 3 * num_experts * form.matrix_bytes(intermediate, hidden)
        config = config_of(
            {
                **{"network": MIXTURE, "hidden": hidden, "intermediate": intermediate},
                **{"query_heads": 1, "kv_heads": 1, "head_dim": 64, "vocab": 64},
                **{"layers": cold_copies(layer_bytes), "num_experts": num_experts, "top_k": top_k},
            }
        )
        self.activation = activation_of(form)
        self._layers = [layer.mlp.switch_mlp for layer in random_model(config, format_name).layers]
        self.elements = parameter_bytes(self._layers[0]) // 2

    def __call__(self, x: mx.array, chosen: mx.array, turn: int) -> mx.array:
        """The sum of the chosen experts of the layer whose turn it is, as an activation again."""
        outputs = self._layers[turn % len(self._layers)](x, chosen)
        return mx.fast.rms_norm(outputs.sum(axis=-2), None, 1e-5)


def experts_chain(
    experts: Experts, *, hidden: int, num_experts: int, top_k: int, tokens: int
) -> Chain:
    """Tokens routed at random through one expert layer after another, a sum and a norm between.

    The sum over a token's experts and the norm are the two links; they stay in the time.
    """
    draws = [
        mx.argsort(mx.random.uniform(shape=(1, tokens, num_experts)), axis=-1)[..., :top_k] + 0
        for _ in range(16)
    ]
    mx.eval(draws)
    start = activations(tokens, hidden, experts.activation)
    return Chain(
        start,
        lambda x, turn: experts(x, draws[turn % len(draws)], turn),
        kernels=EXPERTS_KERNELS,
        elements=experts.elements,
    )
