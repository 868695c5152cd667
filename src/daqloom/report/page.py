"""One HTML file that holds everything it shows and opens without a network."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.report.matplotlib_renderer import png
from daqloom.report.plotly_renderer import Plot, plots

if TYPE_CHECKING:
    from jinja2 import Template

    from daqloom.report.figure import Figure

DPI = 110
LEAST_CONTENTS = 3
"""Headings from which on a page has a table of contents."""


@dataclass(frozen=True, eq=False)
class Section:
    """A heading, sentences, a figure, notes on it and a table, each of which may be missing."""

    heading: str = ""
    sentences: Sequence[str] = ()
    is_answer: bool = False
    """Whether the first sentence stands out."""
    picture: Figure | None = None
    described: str = ""
    """The picture in words, for those who cannot see it."""
    figure: Figure | None = None
    """To zoom, turn and hover."""
    notes: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    """Cells of a table whose first column names the rows."""
    look: str = ""
    """Class of the table: "scroll" for a long one, with "words" in the last column, or "pairs"."""

    @property
    def plots(self) -> list[Plot]:
        """Panels as plotly draws them."""
        return plots(self.figure) if self.figure else []

    @property
    def columns(self) -> int:
        """Number of columns of the grid in which the panels stand."""
        cells = [panel.cell for panel in self.figure.panels] if self.figure else []
        return max((column + wide for _, column, _, wide in cells), default=1)


def page(title: str, subtitle: str, sections: Sequence[Section], lead: Sequence[str] = ()) -> str:
    """Return the page's text. `lead` are the conclusions, sentences that stand first. With an
    interactive figure, Plotly's script is embedded, once and gzip-compressed; the browser unpacks
    it (DecompressionStream, in every browser since 2023)."""
    is_interactive = any(each.figure for each in sections)
    return _template().render(
        title=title,
        subtitle=subtitle,
        sections=sections,
        lead=lead,
        least_contents=LEAST_CONTENTS,
        plotly=_plotly_script() if is_interactive else "",
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["png"] = lambda figure: base64.b64encode(png(figure, DPI)).decode()
    return environment.get_template("page.html")


@cache
def _plotly_script() -> str:
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()
