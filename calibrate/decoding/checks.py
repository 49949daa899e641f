"""What can be seen to fail before a decode begins, each in one line."""

# MLX's own hints are open in places.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from mlx_lm.models.cache import make_prompt_cache

from calibrate.networks import Network
from model.errors import InputError


def check_vocabularies(target: Network, draft: Network) -> None:
    """Refuse a draft that does not speak the target's tokens.

    Raises:
        InputError: their vocabularies have different sizes, or different words.
    """
    # Real networks may pad a shared vocabulary differently; random ones reach all of it.
    both_real = target.tokenizer is not None and draft.tokenizer is not None
    sizes = [network.vocab_size for network in (target, draft)]
    if both_real:
        sizes = [network.tokenizer.vocab_size for network in (target, draft) if network.tokenizer]
    if sizes[0] != sizes[1]:
        wrong = f"has {sizes[1]} tokens and {target.name} has {sizes[0]}"
        raise InputError(f"draft {draft.name}", wrong, "give a draft of the same vocabulary")
    if both_real and target.tokenizer is not draft.tokenizer:
        words = [dict(network.tokenizer.get_vocab()) for network in (target, draft)]  # pyright: ignore[reportOptionalMemberAccess]
        differing = sum(words[1].get(word) != number for word, number in words[0].items())
        if differing:
            wrong = f"numbers {differing} tokens otherwise than {target.name}"
            right = "give a draft with the same tokenizer"
            raise InputError(f"draft {draft.name}", wrong, right)


def check_rollback(network: Network, positions: int) -> None:
    """Refuse caches from which rejected tokens cannot be taken, up to so many positions.

    A recurrent state cannot go back at all, and a sliding window not once it is full. The window
    does not say so: it keeps every rejected token, and the output is wrong. mlx-lm looks at the
    target's cache alone, and only at the start.

    Raises:
        InputError: such a cache.
    """
    cache: list[Any] = make_prompt_cache(network.model)
    if not all(layer.is_trimmable() for layer in cache):
        wrong = "has a state that cannot be rolled back after a rejected token"
        raise InputError(network.name, wrong, "speculate with full-attention models")
    windows = [size for layer in cache if (size := getattr(layer, "max_size", None))]
    if windows and positions >= min(windows):
        wrong = f"cannot be rolled back once its window of {min(windows)} tokens is full"
        raise InputError(network.name, wrong, f"keep context and tokens below {min(windows)}")


def check_positions(network: Network, prompt_tokens: int, positions: int) -> None:
    """Refuse a prompt and an answer that are longer than what the network was made for.

    Raises:
        InputError: they are; a config that states no limit has none.
    """
    limit = getattr(getattr(network.model, "args", None), "max_position_embeddings", None)
    if limit is not None and positions > limit:
        what = f"{prompt_tokens} prompt tokens and {positions - prompt_tokens} more"
        wrong = f"are beyond the {limit} that {network.name} takes"
        raise InputError(what, wrong, "give a shorter prompt or decode less")


def check_prompt(network: Network, tokens: tuple[int, ...]) -> None:
    """Refuse a prompt that is empty or not of this vocabulary.

    Raises:
        InputError: it is.
    """
    if not tokens:
        raise InputError("prompt", "has no tokens", "give one at least")
    last = network.vocab_size - 1
    strange = next((token for token in tokens if not 0 <= token <= last), None)
    if strange is not None:
        right = f"{network.name} has tokens 0 to {last}"
        raise InputError(f"prompt token {strange}", "is not in the vocabulary", right)
