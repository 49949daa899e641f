"""Names of networks as people write them, reduced to what all spellings of one have in common.

A name may carry its owner, its format, what it was tuned for and what packed it, in any case and
with blanks, hyphens or underscores: "mlx-community/Qwen3-0.6B-4bit", "Qwen 3 0.6B" and
"qwen3-0.6b" are one network. Only words that leave every shape as it is are dropped. A number
never is, and no word is replaced by a similar one: what is left has to agree to the letter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import final

SAME_SHAPE = frozenset(
    (
        *("instruct", "it", "chat", "base", "hf", "meta", "text", "qat", "ud"),
        *("mlx", "gguf", "quantized", "head", "drafter", "model"),
    )
)
"""Words of a name that leave the shapes as they are."""
_OWNER = re.compile(r"^[\w.-]+/")
_REMARK = re.compile(r"\(([^()]*)\)")
_FORMAT = re.compile(
    r"""(?ix)[\s_-]+(
        [1-8][ -]?bits? (?:[ -]?g(?:s)?\d+)? (?:-dwq)?
      | i?q[1-8](?:_\w+)*
      | bf16 | fp?16 | fp?32 | mxfp[48](?:-q[48])? | nvfp4
    )$"""
)
_WHOSE = re.compile(r"(?i)\s+(?:drafter|draft|head|weights)$")
_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)*[a-z]*")
"""Letters, or a number with the letters of its unit: "qwen3-8b" is "qwen", "3" and "8b"."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spelled:
    """The words of a name that tell networks apart, and the format it ends with, or ""."""

    words: tuple[str, ...]
    format: str

    @property
    def key(self) -> str:
        """The words in one, which all spellings of one network share."""
        return "-".join(self.words)


@lru_cache(maxsize=4096)
def spelled(name: str) -> Spelled:
    """A name, taken apart.

    >>> spelled("mlx-community/Qwen3-0.6B-4bit")
    Spelled(words=('qwen', '3', '0.6b'), format='4bit')
    >>> spelled("LiquidAI/LFM2.5-2.6B-DSpark (8bit drafter)")
    Spelled(words=('lfm', '2.5', '2.6b', 'dspark'), format='8bit')
    """
    rest, found = _OWNER.sub("", name.strip()), ""
    for remark in _REMARK.findall(rest):
        stated = _WHOSE.sub("", remark)
        if _FORMAT.fullmatch(f" {stated}"):
            found = stated
    rest = _REMARK.sub(" ", rest).strip().removesuffix(".gguf")
    # A name may end "-4bit-mlx" as well as "-mlx-4bit".
    while True:
        if (match := _FORMAT.search(rest)) is not None:
            found = found or match[1]
            rest = rest[: match.start()]
        elif (match := re.search(r"(?i)[\s_-]+(mlx|gguf)$", rest)) is not None:
            rest = rest[: match.start()]
        else:
            break
    words = _WORD.findall(rest.lower().replace("_", "-"))
    return Spelled(words=tuple(word for word in words if word not in SAME_SHAPE), format=found)
