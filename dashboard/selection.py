"""One state of the controls: what is asked, as plain values that a link can carry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from dashboard.command import Command, given


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the sidebar says; the defaults are what the dashboard opens with.

    Attributes:
        machine: A name or a profile file; None is the last calibration, else the packaged M3.
        runtime: Another MLX release than the profile's, and "" for its own.
        memory: GB of memory, and 0 for what the profile says.
        draft: The draft model; "" for none.
        acceptance: Of the draft model: one probability, or one per position; "" where nobody
            knows it.
        task: Published progress of this task stands in where no acceptance is given; "" for none.
        others: Acceptances of other drafted strategies, by their names.
        fetch: Whether configs may be fetched from huggingface.co: a link can name a model, and
            must not fetch it unasked.
    """

    machine: str | None = None
    runtime: str = ""
    memory: int = 0
    target: str = "llama-3.1-8b"
    target_format: str = "4bit"
    draft: str = "llama-3.2-1b"
    draft_format: str = "4bit"
    kv_format: str = ""
    context: int = 1024
    batch: int = 1
    acceptance: str = "0.6"
    task: str = ""
    others: tuple[tuple[str, str], ...] = ()
    fetch: bool = False

    @property
    def on_machine(self) -> tuple[tuple[str, str], ...]:
        """The settings that say which machine."""
        return given(
            ("--machine", self.machine), ("--runtime", self.runtime), ("--memory", self.memory)
        )

    @property
    def of_target(self) -> tuple[tuple[str, str], ...]:
        """The settings that say how the target is held, and behind how many tokens."""
        return (*given(("--format", self.target_format)), ("--context", str(self.context)))

    @property
    def of_draft(self) -> tuple[tuple[str, str], ...]:
        """The settings that say which draft model; none where there is none."""
        if not self.draft:
            return ()
        return given(("--draft", self.draft), ("--draft-format", self.draft_format))

    @property
    def of_cache(self) -> tuple[tuple[str, str], ...]:
        """The settings that say how the cache is held, and for how many sequences."""
        batch = self.batch if self.batch > 1 else 0
        return given(("--kv-format", self.kv_format), ("--batch", batch))

    @property
    def without_acceptances(self) -> Selection:
        """What is asked where nobody's guesses count, so that an acceptance asks nothing new."""
        return replace(self, acceptance="", task="", others=())

    def plan(self, trick: str, *settings: tuple[str, object]) -> Command:
        """`tokroof plan` of a trick."""
        return Command(
            name="plan",
            about=(trick, self.target),
            settings=(*self.of_target, *given(*settings), *self.on_machine),
        )

    @property
    def beside_plans(self) -> tuple[str, ...]:
        """What the controls say and no plan takes."""
        said = (
            (self.batch > 1, "a plan is of one sequence, however many run side by side"),
            (bool(self.kv_format), "a plan has a cache of 16 bits"),
        )
        return tuple(text for holds, text in said if holds)

    def predict(self, strategy: str = "all") -> Command:
        """`tokroof predict` for a strategy, or for all of them."""
        acceptance = self.acceptance if self.draft else ""
        return Command(
            name="predict",
            about=(self.target,),
            settings=(
                *self.of_target,
                *self.of_draft,
                *self.of_cache,
                *given(
                    ("--strategy", strategy),
                    ("--acceptance", acceptance),
                    ("--task", self.task),
                ),
                *given(*(("--acceptance-of", f"{name}={a}") for name, a in self.others)),
                *self.on_machine,
            ),
        )
