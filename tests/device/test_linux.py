"""Adapter of Linux, with FIFOs in a network namespace, and with programs other than `tc`."""

import contextlib
import json
import os
import resource
import stat
from pathlib import Path

import pytest

from daqloom.device.adapter import PortBuffer
from daqloom.device.linux import Linux
from daqloom.device.tool import ToolOptions
from daqloom.machine.namespace import new_namespace
from support.adapter_conformance import check_configures, check_counts, check_refuses
from support.namespaces import can_make_networks

pytestmark = pytest.mark.process

PORTS = ("a", "b")
QUEUES = [
    "qdisc add dev a root handle 1: tbf rate 20mbit burst 3100 limit 1000000",
    "qdisc add dev a parent 1:1 handle 10: bfifo limit 60000",
    "qdisc add dev b root handle 7: pfifo limit 40",
]


@pytest.fixture
def within():
    """A namespace with two ports."""
    if not can_make_networks():
        pytest.skip("this machine allows no network namespaces")
    with contextlib.ExitStack() as stack:
        namespace = new_namespace(stack)
        namespace.batch("ip", ["link add name a type veth peer name b"])
        namespace.batch("tc", QUEUES)
        yield namespace


def linux(namespace, ports=PORTS):
    return Linux(ToolOptions(through=namespace.enter), ports)


def queues(namespace):
    """Queues of each port, without counters."""
    with linux(namespace) as adapter:
        return [
            [
                (each.kind, each.handle, each.place, each.limit)
                for each in adapter._disciplines(port)
            ]
            for port in PORTS
        ]


@pytest.mark.parametrize("wanted", [{"limit_bytes": 50_001}, {"limit_packets": 33}])
def test_conformance(within, wanted):
    before = queues(within)
    check_configures(linux(within), PortBuffer(**wanted))
    assert queues(within) == before
    check_counts(linux(within), PORTS)


def test_a_queue_is_changed_and_its_place_is_not(within):
    with linux(within) as adapter:
        assert adapter.plan(PortBuffer(limit_bytes=9000)) == [
            "tc qdisc change dev a parent 1:1 handle 10: bfifo limit 9000",
            "tc qdisc replace dev b root bfifo limit 9000",
        ]
        adapter.apply(PortBuffer(limit_bytes=9000))
        assert adapter.applied() == {port: PortBuffer(limit_bytes=9000) for port in PORTS}
    (bucket, fifo), [root] = queues(within)
    assert bucket[:3] == ("tbf", "1:", "root")
    assert fifo == ("bfifo", "10:", "parent 1:1", 9000)
    assert root[0] == "bfifo"


SEND = """
import contextlib, socket
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("a", 0))
for _ in range(90):
    with contextlib.suppress(OSError):  # where there is no room
        out.send(bytes(12) + b"\\x12\\x34" + bytes(1000))
"""


def test_packets_that_a_queue_refuses_are_counted(within):
    lines = ["link set dev a up", "link set dev b up"]
    within.batch("ip", lines)
    with linux(within) as adapter:
        adapter.apply(PortBuffer(limit_bytes=20_000))
        before = adapter.read()["a"]
        within.run("python3", "-", text=SEND)
        after = adapter.read()["a"]
    # The bucket of 3100 B releases 3 of 1014 B at once, and 19 wait; more may leave meanwhile.
    assert 90 - 3 - 19 - 40 <= after.dropped - before.dropped <= 90 - 3 - 19


def test_missing_ports_and_those_with_both_limits_or_without_a_fifo_are_refused(within):
    with linux(within) as adapter:
        both = PortBuffer(limit_bytes=9000, limit_packets=3)
        assert "leave one out" in check_refuses(lambda: adapter.apply(both))
        assert "leave one out" in check_refuses(lambda: adapter.plan(both))
    assert "swp9" in check_refuses(lambda: linux(within, ("swp9",)).__enter__())
    with linux(within, ("lo",)) as adapter:
        assert "expected one" in check_refuses(lambda: adapter.save())


def stand_in(folder, text, timeout="60 s"):
    program = folder / "far"
    program.write_text("#!/bin/sh\n" + text)
    program.chmod(stat.S_IRWXU)
    return Linux(ToolOptions(through=(str(program),), timeout=timeout), ("a",))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("echo nonsense", "printed invalid JSON"),
        ("echo '{}'", "printed invalid JSON"),
        ("echo '[5]'", "printed invalid JSON"),
        ('echo \'[{"kind": "bfifo; rm -rf"}]\'', "printed invalid JSON"),
        ("head -c 300 /dev/urandom", "printed invalid JSON"),
        ("exec head -c 20000000 /dev/zero", "more than 16 MiB"),
        ("echo 'Permission denied' >&2; exit 255", "Permission denied"),
        ("kill -9 $$", "no reason given"),
    ],
)
def test_another_answer_is_refused(tmp_path, text, sentence):
    assert sentence in check_refuses(lambda: stand_in(tmp_path, text).__enter__())


def test_output_is_bounded_while_it_is_read(tmp_path):
    # Endless output: memory is bounded, and the timeout does not have to pass.
    endless = stand_in(tmp_path, "exec yes", timeout="60 s")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "prints more than 16 MiB" in check_refuses(endless.__enter__)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "KiB"


CHILDREN = {
    "child": "sleep {s} & wait",
    "grandchild": "(sh -c 'sleep {s} & wait') & wait",
    "group of its own": "set -m; sleep {s} & wait",
    "session of its own": "setsid -w sleep {s}",
    "daemon": "(setsid sleep {s} &); sleep {s}",
    "keeps pipes": "sleep {s} & exec sleep {s}",
}


def sleeping(seconds):
    """Whether a process sleeps so long."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes())
    return f"sleep\0{seconds}\0".encode() in found


@pytest.mark.parametrize("text", CHILDREN.values(), ids=CHILDREN)
def test_the_descendants_of_a_program_end_with_its_time(tmp_path, text):
    seconds = f"99{os.getpid()}{len(text)}"
    endless = stand_in(tmp_path, text.format(s=seconds), timeout="0.5 s")
    assert "has not ended within 0.5 s" in check_refuses(endless.__enter__)
    assert not sleeping(seconds)


def test_a_program_that_is_missing_endless_or_has_a_child_is_ended(tmp_path):
    seconds = f"98{os.getpid()}"
    with stand_in(tmp_path, f"sleep {seconds} & echo '[]'", timeout="60 s"):
        pass
    assert not sleeping(seconds)
    endless = stand_in(tmp_path, "exec sleep 60", timeout="0.5 s")
    assert "has not ended within 0.5 s" in check_refuses(endless.__enter__)
    adapter = Linux(ToolOptions(through=("/no/such/program",)), ("a",))
    assert "/no/such/program" in check_refuses(lambda: adapter.__enter__())


def test_two_ways_to_a_machine_are_one_identity(within):
    def identity(*through):
        with Linux(ToolOptions(through=through), ()) as adapter:
            return adapter.identity()

    assert identity() == identity("env") == identity("env", "A=b")
    here = identity(*within.enter)
    assert here == identity("env", *within.enter)
    assert here != identity(), "the same kernel, and other ports"


@pytest.mark.parametrize("text", ["echo; cat", "echo '../../etc'", "exec cat /dev/null"])
def test_a_machine_without_an_identity_is_refused(tmp_path, text):
    assert "exclude each other" in check_refuses(stand_in(tmp_path, text).identity)


@pytest.mark.parametrize("limit", [True, "9000", None])
def test_a_damaged_configuration_is_not_restored(within, limit):
    with linux(within) as adapter:
        saved = adapter.save()
        saved["a"]["limit"] = limit
        assert "damaged" in check_refuses(lambda: adapter.restore(json.loads(json.dumps(saved))))
