"""Print llms.txt (https://llmstxt.org), the list of pages for language models.

The sections, links and phrases are those of the lists of docs/README.md.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from posixpath import normpath
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


class Entry(NamedTuple):
    """A link of the navigation; `target` is relative to docs/."""

    title: str
    target: str
    phrase: str


def navigation() -> Mapping[str, Sequence[Entry]]:
    """Return the links of docs/README.md by section."""
    _, *sections = re.split(r"^## ", (DOCS / "README.md").read_text(), flags=re.MULTILINE)
    found: dict[str, list[Entry]] = {}
    for section in sections:
        title, _, text = section.partition("\n")
        found[title] = []
        for item in re.findall(r"^- .+(?:\n +.+)*", text, re.MULTILINE):
            words = " ".join(item.split())
            phrase = LINK.split(words)[-1].strip(" :,.")
            found[title] += [Entry(*link, phrase) for link in LINK.findall(words)]
    return found


def contents(link: Callable[[str], str]) -> str:
    """Return the text of llms.txt, with `link` applied to each target."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    readme = (ROOT / "README.md").read_text().split("\n\n")
    lines = [f"# {project['name']}", f"> {project['description']}", readme[1].replace("**", "")]
    for title, entries in navigation().items():
        listed = (f"- [{each.title}]({link(each.target)}): {each.phrase}" for each in entries)
        lines += [f"## {title}", "\n".join(each.removesuffix(": ") for each in listed)]
    return "\n\n".join(lines) + "\n"


if __name__ == "__main__":
    print(contents(lambda target: normpath(f"docs/{target}")), end="")
