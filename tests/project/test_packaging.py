"""Debian packages, services, the container and the recipe of Spack agree with the project."""

import configparser
import itertools
import re
import shutil
import subprocess
import sys
import tomllib
import types
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from daqloom.scenario.schema.measure import Measure
from support.repository import ROOT, make_targets

PACKAGING = ROOT / "packaging"
DEBIAN = PACKAGING / "debian"
SERVICES = sorted((PACKAGING / "systemd").iterdir())
CONTAINER = (PACKAGING / "Containerfile").read_text().replace("\\\n", " ")
RECIPE = PACKAGING / "spack" / "spack_repo" / "daqloom" / "packages" / "daqloom" / "package.py"
NO_RECIPE = {"MLRsearch", "daqloom-adapters", "daqloom-sdn"}
"""Requirements without a package of Spack: of the switch's benchmark, and of the packages."""


# ---- Debian -------------------------------------------------------------------------------------


def paragraphs() -> list[dict[str, str]]:
    """Fields of each paragraph of debian/control."""
    found = []
    for paragraph in (DEBIAN / "control").read_text().split("\n\n"):
        fields = re.findall(r"^([\w-]+):((?:.*\n?)(?:[ \t].*\n?)*)", paragraph, re.MULTILINE)
        found.append({name: " ".join(value.split()) for name, value in fields})
    return found


def test_make_installs_the_build_dependencies_of_the_packages() -> None:
    source, *_binary = paragraphs()
    needed = set(re.findall(r"[\w.+-]+", re.sub(r"\(.*?\)", "", source["Build-Depends"])))
    needed = {name.replace("-compat", "") for name in needed}
    made = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    lists = dict(re.findall(r"^(packages_\w+) := (.*)$", made, re.MULTILINE))
    assert needed <= {*lists["packages_run"].split(), *lists["packages_deb"].split()}


def test_every_package_has_its_files() -> None:
    _source, *binary = paragraphs()
    names = [fields["Package"] for fields in binary]
    assert names == ["daqloom", "daqloom-switch", "libdaqloom-dev"]
    for name in ("daqloom", "libdaqloom-dev"):
        for line in (DEBIAN / f"{name}.install").read_text().splitlines():
            path = line.split()[0]
            assert path.startswith("usr/") or (ROOT / path).exists(), path
    rules = (DEBIAN / "rules").read_text()
    assert set(re.findall(r"packaging/systemd/(\S+)", rules)) == {each.name for each in SERVICES}
    assert (ROOT / (DEBIAN / "daqloom.examples").read_text().strip() / "alerts.yml").exists()
    for line in (DEBIAN / "libdaqloom-dev.examples").read_text().split():
        assert (ROOT / line / "main.cpp").exists()


@pytest.mark.process
def test_development_versions_sort_before_releases_and_old_releases_of_debian_before_new(
    tmp_path: Path,
) -> None:
    script = (ROOT / "scripts" / "deb.sh").read_text()
    expression = re.search(r"sed -E '(.*)'", script)
    assert expression

    def debian(version: str) -> str:
        command = ["sed", "-E", expression[1]]
        done = subprocess.run(command, input=version, capture_output=True, text=True, check=True)
        return done.stdout

    order = ["0.1.0.dev7", "0.1.0rc1", "0.1.0rc1.post2", "0.1.0", "0.1.0.post1", "0.2.0.dev9"]
    versions = [f"{debian(each)}+deb{release}" for each in order for release in (12, 13)]
    for lower, higher in itertools.pairwise(versions):
        subprocess.run(["dpkg", "--compare-versions", lower, "lt", higher], check=True)


# ---- services -----------------------------------------------------------------------------------


@pytest.mark.parametrize("service", SERVICES, ids=lambda path: path.name)
def test_services_have_no_more_rights_than_they_need(service: Path) -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(service)
    settings = parser["Service"]
    assert settings["NoNewPrivileges"] == settings["ProtectHome"] == "true"
    assert settings["ProtectSystem"] in ("full", "strict")
    if service.name == "daqloom-switch.service":  # devices of VFIO
        assert "CAP_SYS_MODULE" not in settings["CapabilityBoundingSet"]
    else:
        assert settings["User"] == "daqloom"
        assert settings["CapabilityBoundingSet"] == ""
        assert "--set" not in settings["ExecStart"]


def test_the_run_control_listens_on_loopback_by_default() -> None:
    assert Measure().bind == "127.0.0.1"


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
@pytest.mark.parametrize("service", SERVICES, ids=lambda path: path.name)
def test_systemd_accepts_the_services(service: Path, tmp_path: Path) -> None:
    name = service.name.replace("@", "@0")
    text = service.read_text().replace("=daqloom ", f"={sys.executable} ")
    (tmp_path / name).write_text(text.replace("User=daqloom", "User=root"))
    command = ["systemd-analyze", "verify", str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith((str(tmp_path), name))]
    assert lines == []


# ---- container ----------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    """Instructions of the Containerfile with their arguments."""
    return re.findall(r"^([A-Z]+) (.*)$", CONTAINER, re.MULTILINE)


def test_the_container_is_debian_with_the_packages_of_the_makefile() -> None:
    found = instructions()
    bases = [words.split()[0] for name, words in found if name == "FROM"]
    assert bases == ["debian:bookworm", "debian:bookworm-slim"]
    runs = [words for name, words in found if name == "RUN"]
    [made] = [words.split()[1:] for words in runs if words.startswith("make ")]
    assert set(made) <= make_targets()
    installed = set(re.findall(r"/tmp/([a-z-]+)_\*\.deb", CONTAINER))
    assert installed <= {fields["Package"] for fields in paragraphs()[1:]}
    assert ("USER", "daqloom") in found
    assert ("ENTRYPOINT", '["daqloom"]') in found


def test_the_trial_without_an_engine_knows_every_instruction_of_the_container() -> None:
    script = (ROOT / "scripts" / "try-container.sh").read_text()
    known = set(re.findall(r"^    ([A-Z]+)\)", script, re.MULTILINE))
    assert {name for name, _ in instructions()} <= known


# ---- Spack --------------------------------------------------------------------------------------


class Variant:
    """The context of `when`: requirements inside belong to a variant."""

    current = ""

    def __init__(self, condition: str) -> None:
        self.condition = condition

    def __enter__(self) -> None:
        Variant.current = self.condition.removeprefix("+")

    def __exit__(self, *_: object) -> None:
        Variant.current = ""


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, dict[str, set[str]]]:
    """The class of the recipe, and its requirements by variant."""
    required: dict[str, set[str]] = defaultdict(set)
    spack, build = types.ModuleType("spack.package"), types.ModuleType("python")

    def depends_on(spec: str, type: object = None) -> None:
        required[Variant.current].add(spec)

    spack.__dict__.update(depends_on=depends_on, when=Variant)
    for name in ("license", "version", "variant", "conflicts"):
        spack.__dict__[name] = lambda *_, **__: None
    build.__dict__["PythonPackage"] = object
    monkeypatch.setitem(sys.modules, "spack.package", spack)
    monkeypatch.setitem(sys.modules, "spack_repo.builtin.build_systems.python", build)
    names: dict[str, Any] = {"__file__": str(RECIPE), "__name__": "recipe"}
    exec(compile(RECIPE.read_text(), RECIPE, "exec"), names)
    return names["Daqloom"], required


@pytest.fixture
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def specs(requirements: list[str]) -> set[str]:
    """Specs of Spack for requirements of Python packages."""
    found = set()
    for text in requirements:
        each = Requirement(text)
        if each.name not in NO_RECIPE and each.name != "daqloom":
            [bound] = each.specifier
            assert bound.operator == ">="
            found.add(f"py-{each.name.lower().replace('_', '-')}@{bound.version}:")
    return found


def test_the_recipe_of_spack_has_the_requirements_of_the_project(recipe, project) -> None:
    _package, required = recipe
    extras = project["project"]["optional-dependencies"]
    core = {spec for spec in required[""] if spec.startswith("py-")}
    build = project["build-system"]["requires"]
    assert core == specs([*build, *project["project"]["dependencies"]])
    for variant in ("figures", "studies", "cluster", "live"):
        assert required[variant] == specs(extras[variant])
    targets = (ROOT / "cmake" / "DaqloomTargets.cmake").read_text()
    dpdk = re.search(r"libdpdk>=([\d.]+)", targets)
    assert dpdk
    assert f"dpdk@{dpdk[1]}:" in required["switch"]
    minimum = project["tool"]["scikit-build"]["cmake"]["version"].removeprefix(">=")
    assert f"cmake@{minimum}:" in required[""]
    assert f"python@{project['project']['requires-python'].removeprefix('>=')}:" in required[""]


def test_the_recipe_of_spack_builds_the_tree_around_it(recipe) -> None:
    package, _required = recipe
    assert package.git == ROOT.as_uri()
