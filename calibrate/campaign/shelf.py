"""The networks that a grid has in memory, so that its runs share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

from calibrate.environment import free_bytes
from calibrate.mlx_device import release
from calibrate.networks import Network
from calibrate.open_network import checkpoint_of, open_network
from model.errors import InputError

Spec: TypeAlias = tuple[str, str, str]
"""Target, format, and whose weights."""


@final
class Shelf:
    """Networks by what they are, opened when they are needed and dropped when room is."""

    def __init__(
        self,
        opener: Callable[[str, str, str], Network] = open_network,
        room: Callable[[], int] = free_bytes,
    ) -> None:
        self._opener = opener
        self._room = room
        self._held: dict[Spec, Network] = {}

    def bring(self, wanted: tuple[Spec, ...], spare_bytes: float) -> tuple[Network, ...]:
        """These networks, with room for their caches; others go first where there is not enough.

        Raises:
            InputError: a network that cannot be opened, or does not fit alone.
        """
        missing = [spec for spec in dict.fromkeys(wanted) if spec not in self._held]
        needed = spare_bytes + sum(checkpoint_of(*spec).total_bytes for spec in missing)
        for other in [spec for spec in self._held if spec not in wanted]:
            if self._room() >= needed:
                break
            del self._held[other]
            release()
        for spec in missing:
            self._held[spec] = self._opener(*spec)
        return tuple(self._held[spec] for spec in wanted)

    def clear(self) -> None:
        """Drop all of them."""
        if self._held:
            self._held.clear()
            release()


def check_format(planned: Spec, found: Network) -> None:
    """Refuse real weights in another format than the plan says: they would be taken for it.

    Raises:
        InputError: such weights.
    """
    name, format_name, _ = planned
    if found.format_name != format_name:
        wrong = f"has its weights in {found.format_name}"
        raise InputError(f"{name} in {format_name}", wrong, "plan that format")
