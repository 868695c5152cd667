"""One HTML file that holds everything it shows and opens without a network."""

from __future__ import annotations

import base64
import gzip
import html
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
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 1180px;
       margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; margin: 0; }}
h2 {{ font-size: 1.1rem; margin: 2.2rem 0 0; }}
p {{ margin: .3rem 0; max-width: 75ch; }}
.sub {{ color: #6b6b6b; }}
.figure {{ height: 440px; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ padding: .25rem .9rem; text-align: right; border-bottom: 1px solid #d9d9d9; }}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; }}
thead th {{ border-bottom: 2px solid #6b6b6b; }}
img {{ max-width: 100%; height: auto; display: block; margin: .6rem 0; }}
.scroll {{ max-height: 32rem; overflow: auto; margin: 1rem 0; }}
.scroll table {{ margin: 0; }}
.scroll td {{ white-space: nowrap; }}
.told {{ overflow-wrap: anywhere; }}
.scroll.words td:last-child, .words th:last-child {{ white-space: normal; text-align: left;
       min-width: 17rem; }}
.told td:first-child {{ white-space: nowrap; }}
.told td {{ text-align: left; vertical-align: top; }}
.told thead {{ display: none; }}
.scroll thead th {{ position: sticky; top: 0; background: white; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="sub">{subtitle}</p>
{body}
<script id="plotly" type="text/plain">{script}</script>
<script type="module">
const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent),
                               (letter) => letter.charCodeAt(0));
const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const script = document.createElement("script");
script.textContent = await new Response(unpacked).text();
document.head.append(script);
for (const place of document.querySelectorAll(".figure")) {{
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
</script>
</body>
</html>
"""


def page(title: str, subtitle: str, parts: Sequence[str]) -> str:
    """The page's text. `parts` are fragments of HTML, such as those below give.

    Plotly's script is embedded once, gzip-compressed; the browser unpacks it (DecompressionStream,
    in every browser since 2023).
    """
    return _PAGE.format(
        title=html.escape(title),
        subtitle=html.escape(subtitle),
        body="\n".join(parts),
        script=_plotly_script(),
    )


def section(heading: str, text: str, figure: Figure) -> str:
    """A heading, a sentence and a figure."""
    data = str(figure.to_json()).replace("</", "<\\/")
    return (
        f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(text)}</p>\n"
        f'<div class="figure"><script type="application/json">{data}</script></div>'
    )


def picture(heading: str, text: str, png: bytes, described: str) -> str:
    """A heading, a sentence and a picture; `described` is for those who cannot see it."""
    data = base64.b64encode(png).decode()
    return (
        f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(text)}</p>\n"
        f'<img alt="{html.escape(described)}" src="data:image/png;base64,{data}">'
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column names the rows."""
    cells = [
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    ]
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    return "\n".join(
        [
            "<table>",
            f"<thead><tr>{names}</tr></thead>",
            "<tbody>",
            *cells,
            "</tbody>",
            "</table>",
        ]
    )


@cache
def _plotly_script() -> str:
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()
