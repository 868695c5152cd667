"""The command that explains a key, a metric or a term."""

from __future__ import annotations

import textwrap
from typing import Annotated

from daqloom.base import lazy
from daqloom.base.words import printable
from daqloom.cli import complete
from daqloom.cli.console.columns import plain_console, print_list
from daqloom.cli.console.terminal import print_json
from daqloom.cli.options import Json, argument

with lazy.imports():
    from daqloom.terms import explain as terms_explain

LABEL = 10
"""Width of labels, in characters."""
WIDEST = 100
MOST = 4
"""Explanations that are printed in full; of more, a list is printed."""


def explain(
    term: Annotated[
        str, argument("TERM", "A key, metric, counter or term.", autocompletion=complete.terms)
    ],
    json: Json = False,
) -> None:
    """Explain a key, a metric, a counter, or a term of messages and of the glossary.

    A key may be shortened to its last part, or have another common name.

    \b
    Examples:
      daqloom explain network.switch.tor.model
      daqloom explain queue_packets
      daqloom explain buffer_peak_bytes.tor
      daqloom explain "linear shift"
    """
    found = terms_explain.explain(term)
    if json:
        print_json(terms_explain.as_record(term, found))
    elif len(found) > MOST:
        print_list({each.names[0]: each.meaning.partition(". ")[0] for each in found})
        print("`daqloom explain NAME` prints more of each.")
    else:
        print("\n\n".join("\n".join(_lines(each)) for each in found))


def _lines(found: terms_explain.Explanation) -> list[str]:
    rows = [
        ("unit", found.unit),
        ("values", found.values),
        ("default", found.default),
        *(("applies", each) for each in found.applies),
        *(("see", each) for each in found.see),
    ]
    lines = [f"{name} ({found.kind})" for name in found.names]
    lines += _wrap(found.meaning, "  ", "  ")
    for label, text in rows:
        if text:
            lines += _wrap(text, f"  {label}".ljust(LABEL), " " * LABEL)
    return lines


def _wrap(text: str, begin: str, below: str) -> list[str]:
    wrapper = textwrap.TextWrapper(
        min(plain_console().width, WIDEST), begin, below, break_on_hyphens=False
    )
    return wrapper.wrap(printable(text))
