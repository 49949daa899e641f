"""Typed reading of a config.json: every refusal names the field by its path.

JSON null counts as absent, as it does for transformers and mlx-lm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast, final

from model.errors import InputError

LARGEST_SIZE = 2**31 - 1
"""Shapes of MLX arrays are 32-bit."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """One object of a config. `where` names the document and `path` leads to the object in it."""

    values: Mapping[str, object]
    where: str
    path: str = ""

    def has(self, key: str) -> bool:
        """Whether the field is stated and not null."""
        return self.values.get(key) is not None

    def refusal(self, key: str, wrong: str, right: str) -> InputError:
        """The error for a field, with what it says if it says something."""
        shown = f" = {_shortened(self.values[key])}" if self.has(key) else ""
        field = f"{self.path}{key}"
        printable = field if field.isprintable() else repr(field)
        return InputError(f"{self.where}: {printable}{shown}", wrong, right)

    def size(
        self,
        key: str,
        default: int | None = None,
        *,
        least: int = 1,
        most: int = LARGEST_SIZE,
    ) -> int:
        """A whole number; `default` stands for a field that is absent.

        Raises:
            InputError: the field is absent without a default, not a whole number or out of range.
        """
        right = f"give a whole number of at least {least}"
        if not self.has(key):
            if default is None:
                raise self.refusal(key, "is missing", right)
            return default
        value = self.values[key]
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.refusal(key, f"is {_kind(value)}", right)
        if value < least:
            raise self.refusal(key, f"is below {least}", right)
        if value > most:
            raise self.refusal(key, f"is above {most}", f"give a whole number of at most {most}")
        return value

    def optional_size(self, key: str) -> int | None:
        """A whole number of at least 1, or None where the config does not say."""
        return self.size(key) if self.has(key) else None

    def flag(self, key: str, default: bool | None = None) -> bool:
        """True or false.

        Raises:
            InputError: the field is absent without a default, or something else.
        """
        if not self.has(key):
            if default is None:
                raise self.refusal(key, "is missing", "give true or false")
            return default
        value = self.values[key]
        if not isinstance(value, bool):
            raise self.refusal(key, f"is {_kind(value)}", "give true or false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string.

        Raises:
            InputError: the field is absent without a default, or something else.
        """
        if not self.has(key):
            if default is None:
                raise self.refusal(key, "is missing", "give a name in quotes")
            return default
        value = self.values[key]
        if not isinstance(value, str):
            raise self.refusal(key, f"is {_kind(value)}", "give a name in quotes")
        return value

    def items(self, key: str) -> tuple[object, ...]:
        """The members of a list; none where the field is absent.

        Raises:
            InputError: the field is something else than a list.
        """
        if not self.has(key):
            return ()
        value = self.values[key]
        if not isinstance(value, list):
            raise self.refusal(key, f"is {_kind(value)}", "give a list")
        return tuple(cast("list[object]", value))

    def child(self, key: str) -> Fields:
        """An object inside this one.

        Raises:
            InputError: the field is absent or something else than an object.
        """
        value = self.values.get(key)
        if value is None:
            raise self.refusal(key, "is missing", "give an object in braces")
        if not isinstance(value, dict):
            raise self.refusal(key, f"is {_kind(value)}", "give an object in braces")
        values = cast("dict[str, object]", value)
        return Fields(values=values, where=self.where, path=f"{self.path}{key}.")


def _kind(value: object) -> str:
    """What JSON would call a value of the wrong kind."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "a number" if isinstance(value, int) else "not a whole number"
    return "a list" if isinstance(value, list) else "an object"


def _shortened(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
