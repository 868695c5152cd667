"""The program that sends and receives flows: what it counts, by known answers."""

import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network
from daqloom.machine.child import Child
from daqloom.machine.namespace import NETWORK
from daqloom.machine.traffic import HEADER
from daqloom.results.errors import MeasureError
from support.laboratories import rack
from support.namespaces import can_make_networks

pytestmark = pytest.mark.process
KEY = 7
FLOW = {
    "number": 3,
    "source": 0,
    "size": 5000,
    "messages": 10,
    "interval_s": 0.0,
    "poisson": False,
    "start_s": 0.0,
    "outstanding": 2,
    "datagram_bytes": 0,
    "congestion": "",
    "seed": "1",
}


@pytest.fixture
def hosts() -> Iterator[list[tuple[Child, Any]]]:
    """Programs of two hosts, which are this one, with their addresses."""
    with ExitStack() as stack:
        program = (sys.executable, "-m", "daqloom.machine.traffic")
        children = [stack.enter_context(Child(program, "traffic")) for _ in range(2)]
        for child in children:
            child.send({"listen": "127.0.0.0/8", "key": KEY})
        yield [(child, child.answer()) for child in children]


def counted(child: Child) -> Any:
    child.send({"count": True})
    return child.answer()


def counted_when(child: Child, is_enough: Callable[[Any], bool]) -> Any:
    while not is_enough(found := counted(child)):
        pass
    return found


@pytest.mark.parametrize(("kind", "datagram_bytes"), [("tcp", 0), ("udp", 1472)])
def test_each_message_is_counted_where_it_is_sent_and_received(hosts, kind, datagram_bytes) -> None:
    (source, _), (target, at) = hosts
    to = [(at["address"], at[kind])]
    source.send({"send": FLOW | {"destinations": to, "datagram_bytes": datagram_bytes}})
    source.answer()
    received = counted_when(target, lambda now: now["received"].get("3", {}).get("messages") == 10)
    whole = {"messages": 10, "size_bytes": 50_000, "lost": 0, "behind_s": 0.0}
    assert received == {"sent": {}, "received": {"3": whole}, "overflowed": 0}
    sent = counted_when(source, lambda now: now["sent"]["3"]["messages"] == 10)
    assert sent["sent"] == {"3": whole}


@pytest.mark.skipif(not can_make_networks(), reason="this machine allows no network namespaces")
def test_a_receiver_has_rate_times_time_and_its_link_has_each_frame() -> None:
    """A source sends message k = 0, 1, … when it is due, at k x 5 ms, or later: in any time at most
    1 + time / 5 ms messages, a burst of 1. Its delay is that of the next message, so that the time
    before has all its messages. A message is one frame."""
    interval_s = 0.005
    with Laboratory(lab_network(rack(network__switch__tor__model="infinite"))) as lab:
        program = (sys.executable, "-m", "daqloom.machine.traffic")
        with ExitStack() as stack:
            source, target = (
                stack.enter_context(Child((*lab.hosts[unit].enter, *program), "traffic"))
                for unit in (0, 2)  # a readout unit and the builder unit
            )
            for child in (source, target):
                child.send({"listen": NETWORK, "key": KEY})
            _, at = source.answer(), target.answer()
            flow = FLOW | {"size": 1000, "messages": 0, "interval_s": interval_s}
            flow |= {"datagram_bytes": 1472, "destinations": [(at["address"], at["udp"])]}
            before_s = time.monotonic()
            source.send({"send": flow})
            source.answer()
            begun_s = time.monotonic()
            counted_when(target, lambda now: now["received"].get("3", {}).get("messages", 0) > 100)
            asked_s = time.monotonic()
            sent = counted(source)["sent"]["3"]
            answered_s = time.monotonic()
            received = counted_when(
                target, lambda now: now["received"]["3"]["messages"] >= sent["messages"]
            )["received"]["3"]
            received_s = time.monotonic()
        frames = lab.read().ports["access.0.down"].sent
    assert received["messages"] <= 1 + (received_s - before_s) / interval_s
    assert sent["messages"] >= (asked_s - begun_s - sent["behind_s"]) / interval_s - 1
    assert sent["messages"] <= 1 + (answered_s - before_s) / interval_s
    assert received["size_bytes"] == 1000 * received["messages"]
    assert received["lost"] == 0
    assert frames >= received["messages"]


def test_a_message_is_lost_when_a_later_one_comes_before_it_is_complete(hosts) -> None:
    target, at = hosts[1]

    def datagram(message: int, parts: int, key: int = KEY) -> bytes:
        return HEADER.pack(key, 3, 0, message, parts, 0)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        for sent in (
            *(datagram(0, 2), datagram(0, 2)),  # complete
            datagram(1, 2),  # its second datagram is missing, and all of message 2
            *(b"short", datagram(9, 1, key=8)),  # of somebody else
            datagram(3, 1),
            datagram(1, 2),  # too late
        ):
            end.sendto(sent, (at["address"], at["udp"]))
    found = counted_when(target, lambda now: now["received"].get("3", {}).get("messages") == 2)
    assert found["received"]["3"]["lost"] == 2
    assert found["received"]["3"]["size_bytes"] == 4 * HEADER.size


def test_a_connection_without_the_key_is_closed_and_not_counted(hosts) -> None:
    target, at = hosts[1]
    with socket.create_connection((at["address"], at["tcp"])) as end:
        end.sendall(HEADER.pack(KEY + 1, 3, 0, 5000, 0, 0))
        assert end.recv(1) == b""
    assert counted(target)["received"] == {}


def test_the_delay_of_a_late_sender_is_counted(hosts) -> None:
    """A message of 1 GiB that is due each microsecond cannot be sent in time."""
    (source, _), (_, at) = hosts
    late = {"size": 1 << 30, "messages": 1000, "interval_s": 1e-6}
    source.send({"send": FLOW | late | {"destinations": [(at["address"], at["tcp"])]}})
    source.answer()
    counted_when(source, lambda now: now["sent"]["3"]["messages"] == 1)
    found = counted_when(source, lambda now: now["sent"]["3"]["behind_s"] > 0.01)
    assert found["sent"]["3"]["messages"] < 1000


def test_an_unreachable_destination_ends_the_program_with_the_reason(hosts) -> None:
    source, _ = hosts[0]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        source.send({"send": FLOW | {"destinations": [taken.getsockname()]}})
        with pytest.raises(MeasureError, match=r"traffic: .*refused"):
            deque(iter(source.answer, None))  # at the first or at the next answer
