"""Citation of daqloom, from CITATION.cff: an entry for BibTeX, and a sentence."""

import re
from pathlib import Path

import daqloom
from daqloom.base.version import commit, installed_version

FILE = Path(daqloom.__file__).with_name("CITATION.cff")
_FIELD = re.compile(r'^(?:  - )?(title|name): "?([^"\n]+)"?$', re.MULTILINE)
"""Fields of CITATION.cff in one line each."""


def citation() -> str:
    """Return the BibTeX entry and the sentence, with the version and the commit installed here."""
    fields = dict(_FIELD.findall(FILE.read_text(encoding="utf-8")))
    title, authors, version = fields["title"], fields["name"], installed_version()
    source = f"commit {commit()}" if commit() else ""
    return f"""\
@misc{{daqloom,
  author = {{{{{authors}}}}},
  title  = {{{{{title}}}}},
  note   = {{version {version}{", " * bool(source)}{source}}},
}}

The results were computed with daqloom {version}{f" ({source})" if source else ""} by the \
{authors.removeprefix("The ")}."""
