"""HTML pages, each in a single file that a browser opens without a network."""

from __future__ import annotations

import base64
import gzip
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.base import lazy
from daqloom.base.output import OutputError, write_text, written_whole
from daqloom.machine.packages import packages_with
from daqloom.report.matplotlib_renderer import save, svg
from daqloom.report.plotly_renderer import Plot, plots

with lazy.imports():
    import jinja2
    import weasyprint
    from plotly import offline

if TYPE_CHECKING:
    from daqloom.report.figure import Figure

COMMAND = re.compile("`([^`]+)`")
LEAST_CONTENTS = 3
"""Smallest number of headings for which a page has a table of contents."""

LONGEST_WHOLE = 9
"""Longest cell of a table that stays on one line (characters)."""


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a page; each of its fields may be empty."""

    heading: str = ""
    sentences: Sequence[str] = ()
    """Sentences; the first one appears above the figure, the others below."""
    is_answer: bool = False
    """Whether the first sentence is emphasised, and repeated at the top of a report."""
    figure: Figure | None = None
    described: str = ""
    """Description of the figure for screen readers."""
    turned: Figure | None = None
    """Figure that replaces `figure` on an interactive page, as it needs a mouse."""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    """Cells of a table; the first column has the names of the rows."""
    look: str = ""
    """CSS classes of the table: "scroll" (long), "words" (text in the last column), "pairs"."""
    name: str = ""
    """Name of the files of the figure."""

    @property
    def interactive(self) -> Figure | None:
        """Figure of an interactive page."""
        return self.turned or self.figure

    @property
    def plots(self) -> list[Plot]:
        """Plots of the interactive figure."""
        return plots(self.interactive) if self.interactive else []

    @property
    def columns(self) -> int:
        """Number of columns in the grid of plots."""
        cells = [panel.cell for panel in self.interactive.panels] if self.interactive else []
        return max((column + wide for _, column, _, wide in cells), default=1)


def write(path: Path, title: str, subtitle: str, sections: Sequence[Section]) -> None:
    """Write a page, or its first figure as png, pdf or svg. Raises OutputError."""
    if path.suffix.lower() == ".html":
        write_text(path, page(title, subtitle, sections))
    else:
        save(next(each.figure for each in sections if each.figure), path)


def page(
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    lead: Sequence[str] = (),
    top: Sequence[Section] = (),
    *,
    interactive: bool = True,
) -> str:
    """Return the HTML of a page. It begins with the conclusions `lead` and the sections `top`; then
    come contents and details. An interactive page has plots that the reader can zoom, turn, and
    inspect with the mouse; Plotly's script is embedded once, gzip-compressed, and the browser
    unpacks it (DecompressionStream, in every browser since 2023). Other pages have figures as
    vectors, and no script."""
    has_plots = interactive and any(each.figure for each in (*top, *sections))
    return _template().render(
        title=title,
        subtitle=subtitle,
        sections=sections,
        lead=lead,
        top=top,
        interactive=interactive,
        least_contents=LEAST_CONTENTS,
        plotly=_plotly_script() if has_plots else "",
    )


def write_pdf(path: Path, text: str) -> None:
    """Write a page without interactive figures as PDF. Raises OutputError, also without pango."""
    try:
        fetcher = weasyprint.urls.URLFetcher(allowed_protocols={"data"})
    except OSError:  # weasyprint loads pango when it is imported
        raise OutputError(
            f"cannot write {path}: pango's library cannot be loaded; install its package "
            f"({packages_with('pango')})"
        ) from None
    printed = weasyprint.HTML(string=text, url_fetcher=fetcher)
    with written_whole(path) as scratch:
        printed.write_pdf(scratch)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["svg"] = lambda figure: base64.b64encode(svg(figure)).decode()
    environment.filters["whole"] = _whole
    environment.filters["prose"] = _prose
    return environment.get_template("page.html")


def _prose(text: str) -> str:
    """Return a sentence as HTML, with commands between backticks as code."""
    return jinja2.filters.do_mark_safe(COMMAND.sub(r"<code>\1</code>", html.escape(text)))


def _whole(cell: str) -> str:
    """Return a short cell without places at which a narrow column may break it: `77 %`."""
    return cell.replace(" ", "\N{NO-BREAK SPACE}") if len(cell) <= LONGEST_WHOLE else cell


@cache
def _plotly_script() -> str:
    return base64.b64encode(gzip.compress(offline.get_plotlyjs().encode(), 9, mtime=0)).decode()
