"""Commands that pages tell people to type, and those of services, are taken as they stand."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from daqloom.cli.main import app
from daqloom.deployment.scenarios import load
from daqloom.study.file.load import load_study
from support.repository import ROOT

DOCS = ROOT / "docs"
GALLERY = "gallery.md"
PAGES = (
    GALLERY,
    *(f"start/{page.name}" for page in sorted((DOCS / "start").iterdir())),
    "tutorial/build-events.md",
    "tutorial/lossless-switch.md",
    "how-to/ask-from-an-assistant.md",
    "how-to/install-on-a-site.md",
    "how-to/run-the-software-switch.md",
    "how-to/your-own-source-and-sink.md",
    "how-to/run-under-slurm.md",
    "how-to/run-over-infiniband.md",
    "how-to/run-over-mpi.md",
    "how-to/put-an-event-builder-on-ethernet.md",
    "how-to/give-messages-priority.md",
    "how-to/inject-faults.md",
)
OURS = {"mine.toml": "laptop", "my.toml": "laptop", "beside.toml": "small-rack"}
"""In place of a reader's own scenario."""


def commands(page: str) -> Iterator[list[str]]:
    """Words after `daqloom`, of every such command in a page's blocks for the shell."""
    text = (DOCS / page).read_text()
    for block in re.findall(r"```(?:console|bash)\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.match(r"(?:\w*\$ )?(?:srun \S+ )?daqloom (.*)", line)
            if found:
                known = found[1].replace("$address", "10.0.0.1")
                yield shlex.split(re.split(r"\s(?:&|>|\|)(?:\s|$)", known)[0], comments=True)


def options(words: list[str]) -> dict[str, Any]:
    """Return the values of the innermost command, by parameter. Raises what typer raises."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("daqloom", list(words))
    while hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    given: dict[str, Any] = context.params
    return given


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_taken_as_they_stand(page: str) -> None:
    found = list(commands(page))
    assert found
    for words in found:
        given = options(words)
        if scenario := given.get("scenario"):
            load(OURS.get(scenario, scenario), given["set_"] or ())


def gallery() -> list[str]:
    """Return the parts of the gallery, each with one figure."""
    return (DOCS / GALLERY).read_text().split("\n### ")[1:]


def test_the_gallery_has_every_image_once_and_no_other() -> None:
    shown = [re.findall(r"!\[[^\]]+\]\(images/(.*?)\)", part) for part in gallery()]
    assert all(len(images) == 1 for images in shown)
    assert sorted(image for [image] in shown) == sorted(
        path.name for path in (DOCS / "images").iterdir()
    )


def test_each_figure_of_the_gallery_has_a_command_that_draws_it_from_a_shipped_system() -> None:
    for part in gallery():
        [block] = re.findall(r"```console\n(.*?)```", part, re.DOTALL)
        lines = block.replace("\\\n", " ").splitlines()
        assert all(line.startswith("$ ") for line in lines)
        words = shlex.split(lines[-1].removeprefix("$ "), comments=True)
        if words[0] == "python":
            assert (ROOT / words[1]).exists()
            continue
        given = options(words[1:])
        studies = {"report": given.get("files", ()), "study": [given.get("file")]}
        for study in studies.get(words[1], ()):
            assert load_study(study).name == str(study)
            assert f"$ daqloom study run {study}\n" in block
        drawn = given.get("figure") or given.get("output")
        assert drawn or words[1] in ("demo", "report"), f"{lines[-1]} draws nothing"


SERVICES = sorted((ROOT / "packaging" / "systemd").iterdir())


@pytest.mark.parametrize("service", SERVICES, ids=lambda path: path.name)
def test_commands_of_services_are_taken_as_they_stand(service: Path, tmp_path: Path) -> None:
    found = re.findall(r"^ExecStart\w*=daqloom (.*)$", service.read_text(), re.MULTILINE)
    assert found
    for command in found:
        words = command.replace("%i", "0").replace("%d", str(tmp_path)).replace("${CONTROL}", "a:1")
        assert options(shlex.split(words))


def test_unknown_commands_and_options_are_found() -> None:
    for words in (["measure", "laptop", "--no-such-option"], ["no-such-command"]):
        with pytest.raises(Exception, match=r"No such option|there is no command"):
            options(words)
