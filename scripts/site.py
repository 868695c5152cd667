"""Hook of mkdocs: the navigation, the files outside docs/ that pages link to, and generated pages.

The pages are plain Markdown with links that work in the repository. The site has the same links:
files outside docs/ are part of it, in repository/.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

import llms
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from typer.main import get_command

import daqloom
from daqloom.cli.main import app

ROOT = Path(__file__).parent.parent
INDEX = "README.md"
OUTSIDE = "repository/"
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(?=[)#])")
HEADERS = ("source.hpp", "sink.hpp")
CLASSES = ("daqloom.system.System", "daqloom.results.result.Result")
WIDTH = 80


def _navigated(entry: llms.Entry) -> str | dict[str, str]:
    """Return an entry of the navigation; a page has its own title, a notebook none."""
    place = _on_site(INDEX, entry.target)
    return place if entry.target.endswith(".md") else {entry.title: place}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation: the sections and links of docs/README.md, in its order."""
    sections: dict[str, list[Any]] = {
        title: [_navigated(entry) for entry in entries]
        for title, entries in llms.navigation().items()
    }
    sections["Reference"] += [{title: page} for page, (title, _) in GENERATED.items()]
    config.nav = [INDEX, *({title: entries} for title, entries in sections.items())]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to outside docs/, and the generated pages."""
    pages = [file.src_uri for file in files.documentation_pages()]
    while pages:
        page = pages.pop()
        for target in _targets(page):
            if target.startswith(OUTSIDE) and target not in files.src_uris:
                source = ROOT / target.removeprefix(OUTSIDE)
                files.append(
                    File.generated(
                        config,
                        target,
                        abs_src_path=str(source),
                        inclusion=InclusionLevel.NOT_IN_NAV,
                    )
                )
                if target.endswith(".md"):
                    pages.append(target)
    for page, (title, contents) in GENERATED.items():
        files.append(File.generated(config, page, content=f"# {title}\n\n{contents()}"))
    urls = {file.src_uri: file.url for file in files}
    text = llms.contents(lambda target: urls[_on_site(INDEX, target)])
    files.append(File.generated(config, "llms.txt", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links at the site's copy of files outside docs/."""
    own = page.file.src_uri
    folder = str(PurePosixPath(own).parent)
    return LINK.sub(lambda link: relpath(_on_site(own, link[0]), folder), markdown)


def _targets(page: str) -> Iterator[str]:
    """Yield the files of the site that a page links to."""
    for link in LINK.finditer(_in_repository(page).read_text()):
        yield _on_site(page, link[0])


def _in_repository(page: str) -> Path:
    outside = page.startswith(OUTSIDE)
    return ROOT / (page.removeprefix(OUTSIDE) if outside else f"docs/{page}")


def _on_site(page: str, link: str) -> str:
    """Return the site's file for a link of a page; the README for a folder that has one."""
    path = normpath(_in_repository(page).parent.relative_to(ROOT) / link)
    if (ROOT / path / INDEX).exists():
        path = f"{path}/{INDEX}"
    inside = path.removeprefix("docs/")
    return inside if inside != path else OUTSIDE + path


def _commands() -> str:
    """Return the help of every command, by walking through the groups."""

    def help_of(command: Any, words: tuple[str, ...], parent: Any) -> Iterator[str]:
        context = command.context_class(
            command,
            info_name=words[-1],
            parent=parent,
            terminal_width=WIDTH,
            max_content_width=WIDTH,
        )
        yield f"{'##' if len(words) < 3 else '###'} `{' '.join(words)}`\n\n```text"
        yield f"{command.get_help(context)}\n```\n"
        for name, each in getattr(command, "commands", {}).items():
            if not each.hidden:
                yield from help_of(each, (*words, name), context)

    return "\n".join(help_of(get_command(app), ("daqloom",), None))


def _functions() -> str:
    """Return the directives for the functions of the package and the classes that they return."""
    names = (name for name in daqloom.__all__ if not name.startswith("_"))
    own = (f"{getattr(daqloom, name).__module__}.{name}" for name in names)
    return "\n\n".join(f"::: {name}" for name in (*own, *CLASSES))


def _headers() -> str:
    """Return the headers that a source or a sink of one's own includes."""
    return "\n\n".join(
        f"## {name}\n\n```cpp\n{(ROOT / 'engine/live/ends' / name).read_text()}```"
        for name in HEADERS
    )


GENERATED = {
    "reference/commands.md": ("Commands", _commands),
    "reference/python.md": ("Python", _functions),
    "reference/headers.md": ("C++ headers of sources and sinks", _headers),
}
