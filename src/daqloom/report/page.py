"""One HTML file that holds everything it shows and opens without a network."""

from __future__ import annotations

import base64
import gzip
import html
import itertools
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ --text: #1a1a1a; --faint: #6b6b6b; --line: #d9d9d9; --ground: #fff; --link: #00598c; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --text: #e2e2e2; --faint: #a2a2a2; --line: #444; --ground: #17181a; --link: #7cc0ee; }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground);
       max-width: 1180px; margin: 2rem auto; padding: 0 1rem; }}
a {{ color: var(--link); }}
h1 {{ font-size: 1.5rem; margin: 0; }}
h2 {{ font-size: 1.1rem; margin: 2.2rem 0 0; }}
p {{ margin: .3rem 0; max-width: 75ch; }}
.sub {{ color: var(--faint); }}
nav ul {{ margin: .8rem 0; padding: 0; list-style: none; display: flex; flex-wrap: wrap;
       gap: .2rem 1.4rem; }}
.answer {{ font-weight: 600; }}
/* Figures are drawn on white: in the dark they are cards. */
.figure, img {{ background: #fff; border-radius: 6px; }}
.figure {{ height: 440px; margin: .6rem 0; }}
.figure.solid {{ height: 620px; }}
img {{ max-width: 100%; height: auto; display: block; margin: .6rem 0; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ padding: .25rem .9rem; text-align: right; border-bottom: 1px solid var(--line); }}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; }}
thead th {{ border-bottom: 2px solid var(--faint); }}
.scroll {{ max-height: 32rem; overflow: auto; margin: 1rem 0; }}
.scroll table {{ margin: 0; }}
.scroll td {{ white-space: nowrap; }}
.told {{ overflow-wrap: anywhere; }}
.scroll.words td:last-child, .words th:last-child {{ white-space: normal; text-align: left;
       min-width: 17rem; }}
.told td:first-child {{ white-space: nowrap; }}
.told td {{ text-align: left; vertical-align: top; }}
.told thead {{ display: none; }}
.scroll thead th {{ position: sticky; top: 0; background: var(--ground); }}
@media print {{
  @page {{ margin: 14mm; }}
  :root {{ --text: #000; --faint: #555; --line: #bbb; --ground: #fff; --link: #000; }}
  body {{ font-size: 10pt; max-width: none; margin: 0; padding: 0; }}
  nav {{ display: none; }}
  h2, h2 + p {{ break-after: avoid; }}
  img, .figure, tr {{ break-inside: avoid; }}
  .scroll {{ max-height: none; overflow: visible; }}
  .scroll td, .scroll th {{ white-space: normal; font-size: 7.5pt; padding: .1rem .35rem; }}
  .scroll.words td:last-child, .words th:last-child {{ min-width: 0; }}
  .scroll thead th {{ position: static; }}
  .figure {{ width: 100%; overflow: hidden; }}
}}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="sub">{subtitle}</p>
{lead}
{contents}
{body}
{script}
</body>
</html>
"""

_SCRIPT = """<script id="plotly" type="text/plain">{plotly}</script>
<script type="module">
const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent),
                               (letter) => letter.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const script = document.createElement("script");
script.textContent = await new Response(unpacked).text();
document.head.append(script);
const places = document.querySelectorAll(".figure");
for (const place of places) {{
  const figure = JSON.parse(place.firstElementChild.textContent);
  place.replaceChildren();
  const flat = ["toImage", "zoom2d", "pan2d", "autoScale2d"];
  const solid = ["toImage", "orbitRotation", "pan3d", "zoom3d", "resetCameraDefault3d"];
  Plotly.newPlot(place, figure.data, figure.layout, {{
    responsive: true,
    displaylogo: false,
    modeBarButtons: [figure.layout.scene ? solid : flat],
  }});
}}
// Paper is narrower than the window that the figures were drawn for: 180 mm fit A4 and Letter.
const fit = (size) => places.forEach((place) => Plotly.relayout(place, size));
addEventListener("beforeprint", () => fit({{autosize: false, width: 680}}));
addEventListener("afterprint", () => fit({{autosize: true, width: null}}));
</script>"""

_FIGURE = '<div class="figure'
_HEADING = re.compile(r"<h2>(.*?)</h2>")
LEAST_CONTENTS = 3
"""Headings from which on a page has a table of contents."""


def page(title: str, subtitle: str, parts: Sequence[str], lead: Sequence[str] = ()) -> str:
    """The page's text. `parts` are fragments of HTML, such as those below give; `lead` are the
    conclusions, sentences that stand first. Where a part is an
    interactive figure, Plotly's script is embedded, once and gzip-compressed; the browser unpacks
    it (DecompressionStream, in every browser since 2023)."""
    headings = _HEADING.findall("\n".join(parts))
    places = itertools.count(1)
    body = _HEADING.sub(
        lambda found: f'<h2 id="part{next(places)}">{found[1]}</h2>', "\n".join(parts)
    )
    drawn = any(_FIGURE in part for part in parts)
    return _PAGE.format(
        title=html.escape(title),
        subtitle=html.escape(subtitle),
        lead="\n".join(f'<p class="answer">{html.escape(text)}</p>' for text in lead),
        contents=_contents(headings) if len(headings) >= LEAST_CONTENTS else "",
        body=body,
        script=_SCRIPT.format(plotly=_plotly_script()) if drawn else "",
    )


def _contents(headings: Sequence[str]) -> str:
    entries = (f'<li><a href="#part{n}">{text}</a></li>' for n, text in enumerate(headings, 1))
    return f'<nav aria-label="Contents"><ul>{"".join(entries)}</ul></nav>'


def section(heading: str, text: str, figure: Figure) -> str:
    """A heading, a sentence and an interactive figure."""
    solid = " solid" if "scene" in figure.layout.to_plotly_json() else ""
    data = str(figure.to_json()).replace("</", "<\\/")
    return (
        f"<h2>{html.escape(heading)}</h2>\n{_paragraph(text)}"
        f'{_FIGURE}{solid}"><script type="application/json">{data}</script></div>'
    )


def picture(heading: str, text: str, png: bytes, described: str, *, answer: bool = False) -> str:
    """A heading, a sentence and a picture; `described` is for those who cannot see it. A sentence
    that is an `answer` stands out."""
    data = base64.b64encode(png).decode()
    return (
        f"<h2>{html.escape(heading)}</h2>\n{_paragraph(text, answer=answer)}"
        f'<img alt="{html.escape(described)}" src="data:image/png;base64,{data}">'
    )


def _paragraph(text: str, *, answer: bool = False) -> str:
    """A paragraph and the end of its line; empty without a text."""
    look = ' class="answer"' if answer else ""
    return f"<p{look}>{html.escape(text)}</p>\n" if text else ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column names the rows."""
    cells = [
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    ]
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    return "\n".join(
        ["<table>", f"<thead><tr>{names}</tr></thead>", "<tbody>", *cells, "</tbody>", "</table>"]
    )


@cache
def _plotly_script() -> str:
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()
