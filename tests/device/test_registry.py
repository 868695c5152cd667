"""Adapters of other packages: a broken one does no harm, and none replaces one of daqloom."""

import sys
from importlib.metadata import entry_points

import pytest

from daqloom.device import registry
from daqloom.device.linux import Linux
from daqloom.device.registry import adapter_type, name_conflicts, names
from daqloom.scenario.errors import ScenarioError
from support.command import invoke, output

GOOD = """
from daqloom.device.adapter import AdapterOptions
class Good:
    Options = AdapterOptions
    def __init__(self, options, ports, credentials):
        raise OSError("no \\x1b[31mway")
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def begin(self): pass
    def read(self): return {}
"""
BROKEN = {
    "raises": ("raise RuntimeError('\\x1b[31mred')", r"RuntimeError: \x1b[31mred"),
    "exits": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "syntax": ("def", "SyntaxError"),
    "imports": ("import no_such_package", "no_such_package"),
    "nothing": ("", "AttributeError"),
    "number": ("Good = 5", "no class with Options"),
    "bare": ("class Good: pass", "no class with Options"),
    "other": ("class Good:\n    Options = int", "not derived from AdapterOptions"),
    "unset": (GOOD + "    settable = 7", "settable is no set"),
}


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Other packages, as pip installs them."""
    texts = {name: text for name, (text, _) in BROKEN.items()} | {"linux": GOOD, "good": GOOD}
    for name, text in texts.items():
        (tmp_path / f"of_{name}.py").write_text(text)
        meta = tmp_path / f"pkg_{name}-1.dist-info"
        meta.mkdir()
        (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pkg-{name}\nVersion: 1\n")
        (meta / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{name} = of_{name}:Good\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield {point.name for point in entry_points(group=registry.GROUP)}
    for name in texts:
        sys.modules.pop(f"of_{name}", None)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_adapter_is_a_sentence(plugins, name):
    with pytest.raises(ScenarioError) as refused:
        adapter_type(name)
    text = str(refused.value)
    assert text.startswith(f'the adapter "{name}" is broken: ')
    assert BROKEN[name][1] in text
    assert text.endswith(f"update or remove the package pkg-{name}")
    assert text.isprintable()


def test_all_others_are_listed_with_broken_ones(plugins):
    printed = output("lab", "adapters")
    assert set(names()) == plugins
    assert "Sets" in printed
    assert printed.count("is broken") == len(BROKEN)
    assert "\x1b" not in printed


def test_an_adapter_of_daqloom_is_not_replaced(plugins):
    assert adapter_type("linux") is Linux
    [conflict] = name_conflicts(["linux"])
    assert conflict == (
        'the adapter "linux" of the package pkg-linux is left out: the package daqloom has one of '
        "that name; rename its entry point"
    )
    assert name_conflicts() == [conflict]


def test_a_missing_adapter_names_the_package_to_install(monkeypatch):
    points = [point for point in entry_points(group=registry.GROUP) if point.name == "linux"]
    monkeypatch.setattr("daqloom.base.plugins.entry_points", lambda group: points)
    with pytest.raises(ScenarioError) as refused:
        adapter_type("snmp")
    assert str(refused.value) == (
        'there is no adapter "snmp"; known are linux; '
        "more adapters come with: pip install daqloom-adapters"
    )
    done = invoke("lab", "adapters")
    assert done.exit_code == 0
    assert done.stdout.startswith("linux ")
    assert done.stderr == "daqloom: more adapters come with: pip install daqloom-adapters\n"


def test_an_exception_of_a_new_adapter_is_a_sentence(plugins, tmp_path):
    file = tmp_path / "tor.toml"
    file.write_text('ports = ["p1"]\n[count]\nadapter = "good"\n')
    printed = output("lab", "show", file, code=2)
    assert "Traceback" not in printed
    assert '"good" is broken: OSError: no \\x1b[31mway' in printed
