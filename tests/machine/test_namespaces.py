"""Namespaces of units: what the kernel says of their links."""

import shutil
import subprocess
from contextlib import ExitStack

import pytest

from daqloom.machine.launch import Task
from daqloom.machine.namespaces import Link, Namespaces, tools_of
from daqloom.results.errors import MeasureError
from support.namespaces import SBIN

pytestmark = pytest.mark.process


class Prints:
    """A launcher of what prints the addresses of its namespace."""

    def tasks(self, units, control):
        return [Task((unit,), ("ip", "-brief", "address", "show", "eth0")) for unit in units]


def printed(*command: str) -> str:
    env = {"PATH": SBIN}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout


@pytest.fixture
def network():
    if any(shutil.which(name, path=SBIN) is None for name in ("nft", "tc", "ip")):
        pytest.skip("the programs that break links are not here")
    with ExitStack() as stack:
        try:
            spaces = stack.enter_context(Namespaces(2, ["nft", "tc"]))
        except MeasureError as error:
            pytest.skip(str(error))
        yield spaces


def test_each_unit_has_an_address_of_its_own(network: Namespaces) -> None:
    first, second = network.launching(Prints()).tasks((0, 1), "")
    assert "10.113.0.1/16" in printed(*first.command)
    assert "10.113.0.2/16" in printed(*second.command)


def test_a_link_is_broken_as_set_and_repaired_again(network: Namespaces) -> None:
    bridge = network._bridge.enter

    def state() -> tuple[bool, bool, str]:
        is_up = ",UP" in printed(*bridge, "ip", "link", "show", "dev", "u1")
        is_shaped = "tbf" in printed(*bridge, "tc", "qdisc", "show", "dev", "u1")
        return is_up, is_shaped, printed(*bridge, "nft", "list", "ruleset")

    sound, broken = Link(), Link(up=False, lost_to_unit=1, lost_from_unit=0.25, rate_bps=10**7)
    assert state() == (True, False, "")
    network.set(1, sound, broken)
    is_up, is_shaped, rules = state()
    assert (is_up, is_shaped) == (False, True)
    assert "hook egress" in rules
    assert "numgen random mod 1000000 < 250000 drop" in rules
    network.set(1, broken, sound)
    is_up, is_shaped, rules = state()
    assert (is_up, is_shaped) == (True, False)
    assert "drop" not in rules


def test_missing_programs_are_found_before_any_namespace_is_made(monkeypatch) -> None:
    assert tools_of([Link(), Link(up=False)]) == []
    assert tools_of([Link(rate_bps=1), Link(lost_from_unit=0.5)]) == ["nft", "tc"]
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(MeasureError, match=r"the program tc, which is not here; .*: iproute-tc"):
        Namespaces(1, ["tc"]).__enter__()
