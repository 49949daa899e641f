"""A figure: one picture, the sentence that answers its question, and the data behind both."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, final

import vl_convert

from dashboard.charts.drawing import Drawing
from dashboard.command import Command


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figure:
    """What a view shows; all of its numbers are computed, none is written.

    Attributes:
        name: The name of its files when they are kept.
        sentence: The answer, in Markdown.
        chart: The picture; None where there is nothing to draw.
        alternative: The picture in words, for who cannot see it: what it shows, and its numbers.
        reading: How to read the picture.
        rows: The records that the picture draws, for a table and to keep.
        command: The call that gives the same numbers.
        where: What was asked, and what the constants rest on.
        cautions: What the answer goes beyond.
    """

    name: str
    sentence: str
    chart: Drawing | None
    alternative: str
    reading: str
    rows: tuple[Any, ...]
    command: Command
    where: str = ""
    cautions: tuple[str, ...] = ()

    @property
    def picture_name(self) -> str:
        """What the picture shows, without numbers, so that it stays while these change."""
        return self.alternative.partition(":")[0]

    def as_csv(self) -> str:
        """The rows as comma-separated text under their field names."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if self.rows:
            names = [field.name for field in fields(self.rows[0])]
            writer.writerow(names)
            writer.writerows([getattr(row, name) for name in names] for row in self.rows)
        return text.getvalue()

    def as_json(self) -> str:
        """The rows, the sentence and the command as one document."""
        document = {
            "figure": self.name,
            "sentence": plainly(self.sentence),
            "command": self.command.text,
            "rows": [asdict(row) for row in self.rows],
        }
        return json.dumps(document, indent=2)

    def as_svg(self) -> str:
        """The picture as it is drawn, at a width of its own."""
        return vl_convert.vegalite_to_svg(self._alone())

    def as_png(self) -> bytes:
        """The picture in pixels, two for each of the SVG's."""
        return vl_convert.vegalite_to_png(self._alone(), scale=2.0)

    def _alone(self) -> str:
        """The picture's specification outside of a page, which would give it its width."""
        if self.chart is None:
            raise AssertionError("a figure without a chart has no picture to keep")
        page = {"width": PICTURE_WIDTH, "background": "white"}
        return json.dumps({**page, **self.chart.to_dict()})


PICTURE_WIDTH = 640


def literally(text: str) -> str:
    """A text as Markdown that shows it as it stands: a link may name a model in Markdown."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


def with_code(text: str) -> str:
    r"""A text as it stands, but for what it has between backticks, which is code.

    >>> with_code("run `tokroof calibrate`!")
    'run `tokroof calibrate`\\\\!'
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return literally(text)
    return "".join(f"`{part}`" if i % 2 else literally(part) for i, part in enumerate(parts))


def plainly(markdown: str) -> str:
    """A sentence without its emphasis.

    >>> plainly("**Yes:** it is 2 times faster.")
    'Yes: it is 2 times faster.'
    """
    return markdown.replace("**", "")


def in_words(what: str, rows: Sequence[str]) -> str:
    """The alternative text of a chart with one mark for each row."""
    return f"{what}: {'; '.join(rows)}." if rows else f"{what}: nothing to show."
