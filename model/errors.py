"""Bad input, as one line a person can act on.

Every refusal in tokroof is an :class:`InputError`: the value that was given, what is wrong with
it, and what would be right. The command line prints it as one line on stderr and exits with 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class InputError(ValueError):
    """A value that cannot be used, why, and what could be.

    >>> print(InputError("--acceptance 1.4", "is not a probability", "give a number in [0, 1]"))
    --acceptance 1.4: is not a probability; give a number in [0, 1]
    """

    def __init__(self, value: str, wrong: str, right: str) -> None:
        line = f"{value}: {wrong}; {right}"
        # A file name may hold a line break; the message stays one line.
        super().__init__(" ".join(line.splitlines()))
        self.value = value
        self.wrong = wrong
        self.right = right


def unwritable(path: Path, error: OSError) -> InputError:
    """The refusal of a place where nothing can be written.

    >>> print(unwritable(Path("/x/p.json"), PermissionError(13, "Permission denied")))
    /x/p.json: cannot be written (permission denied); give a place that you may write to
    """
    reason = (error.strerror or type(error).__name__).lower()
    return InputError(
        str(path), f"cannot be written ({reason})", "give a place that you may write to"
    )


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The refusal of a name that is not in a list, with its nearest neighbours.

    >>> print(unknown_name("model", "lama-3.1-8b", ["llama-3.1-8b", "qwen3-4b"]))
    model 'lama-3.1-8b': is not known; did you mean llama-3.1-8b?
    """
    choices = sorted(known)
    near = get_close_matches(name.lower(), choices, n=3, cutoff=0.5)
    if near:
        right = f"did you mean {' or '.join(near)}?"
    elif len(choices) <= 12:
        right = f"known: {', '.join(choices)}"
    else:
        right = f"`tokroof {kind}s` lists all {len(choices)}"
    return InputError(f"{kind} {name!r}", "is not known", right)


def first_line(error: BaseException) -> str:
    """An error of somebody else's code in a line: the first of its message, or its kind."""
    return (str(error).splitlines() or [type(error).__name__])[0]
