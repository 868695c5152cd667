"""HTML pages, each in a single file that a browser opens without a network."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.base import lazy
from daqloom.base.output import write_text
from daqloom.report.matplotlib_renderer import png, save
from daqloom.report.plotly_renderer import Plot, plots

with lazy.imports():
    import jinja2
    from plotly import offline

if TYPE_CHECKING:
    from daqloom.report.figure import Figure

DPI = 110
LEAST_CONTENTS = 3
"""Smallest number of headings for which a page has a table of contents."""


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a page; each of its fields may be empty."""

    heading: str = ""
    sentences: Sequence[str] = ()
    """Sentences; the first one appears above the figure, the others below."""
    is_answer: bool = False
    """Whether the first sentence is emphasised."""
    picture: Figure | None = None
    described: str = ""
    """Description of the picture for screen readers."""
    figure: Figure | None = None
    """Figure that the reader can zoom, turn, and inspect with the mouse."""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    """Cells of a table; the first column has the names of the rows."""
    look: str = ""
    """CSS classes of the table: "scroll" (long), "words" (text in the last column), "pairs"."""
    name: str = ""
    """Name of the files of the picture."""

    @property
    def plots(self) -> list[Plot]:
        """Plots of the interactive figure."""
        return plots(self.figure) if self.figure else []

    @property
    def columns(self) -> int:
        """Number of columns in the grid of plots."""
        cells = [panel.cell for panel in self.figure.panels] if self.figure else []
        return max((column + wide for _, column, _, wide in cells), default=1)


def write(path: Path, title: str, subtitle: str, sections: Sequence[Section]) -> None:
    """Write a page, or its first interactive figure as png, pdf or svg. Raises OutputError."""
    if path.suffix.lower() == ".html":
        write_text(path, page(title, subtitle, sections))
    else:
        save(next(each.figure for each in sections if each.figure), path)


def page(title: str, subtitle: str, sections: Sequence[Section], lead: Sequence[str] = ()) -> str:
    """Return the HTML of a page, which begins with the conclusions `lead`. If a figure is
    interactive, Plotly's script is embedded once, gzip-compressed; the browser unpacks it
    (DecompressionStream, in every browser since 2023)."""
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
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["png"] = lambda figure: base64.b64encode(png(figure, DPI)).decode()
    return environment.get_template("page.html")


@cache
def _plotly_script() -> str:
    return base64.b64encode(gzip.compress(offline.get_plotlyjs().encode(), 9, mtime=0)).decode()
