"""The kernel's side from within: one line of JSON in, one run of the incast, one line out.

Started by `kernel.py` in namespaces of its own. Ends when its standard input closes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import network
from comparison import BOTTLENECK_BPS, LONGEST_ROUND_S, REPLY_BYTES, SENDERS, WARMUP_S
from network import RECEIVER, command, inside, sender_address, sender_name
from software import SoftwareSwitch

BURST_BYTES = 3100
"""Two packets on the wire: the timer may be late by one packet and the rate is kept."""

HOSTS = [sender_name(i) for i in range(SENDERS)]


def main() -> int:
    build = Path(sys.argv[1])
    try:
        # Private to this mount namespace: names of network namespaces, and its own processes.
        command("mount", "-t", "tmpfs", "tmpfs", "/run")
        command("mount", "-t", "proc", "proc", "/proc")
        ports = network.build_hosts(SENDERS)
        bottleneck = network.Bottleneck(BOTTLENECK_BPS, BURST_BYTES)
        with switch_of(ports, bottleneck, *sys.argv[2:]) as switch:
            say({"sysctl": network.settings(HOSTS[0]), "burst_bytes": BURST_BYTES})
            for line in sys.stdin:
                say(run(build, switch, json.loads(line)))
    except (RuntimeError, OSError, subprocess.SubprocessError, ValueError) as error:
        say({"error": f"the incast between network namespaces: {error}"})
        return 1
    return 0


@contextmanager
def switch_of(
    ports: Sequence[str], bottleneck: network.Bottleneck, daqloom: str = ""
) -> Iterator[network.Bridge | SoftwareSwitch]:
    """The kernel's bridge, or the software switch of a `daqloom` command."""
    if not daqloom:
        yield network.Bridge(ports, bottleneck)
        return
    with SoftwareSwitch(daqloom, ports, bottleneck.rate_bps) as switch:
        yield switch


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def run(
    build: Path, switch: network.Bridge | SoftwareSwitch, question: dict[str, Any]
) -> dict[str, Any]:
    """One run: fresh connections, counters read before and after."""
    switch.set_buffer(question["buffer_packets"])
    with ExitStack() as stack:
        if question["static_window"]:
            stack.enter_context(registered(build, question["static_window"]))
        queue, tcp = switch.counters(), tcp_counters()
        senders = stack.enter_context(started_senders(build, question["congestion"]))
        receiver = stack.enter_context(
            started_receiver(build, question["rounds"], question["seconds"])
        )
        time.sleep(WARMUP_S)
        queue_warm = switch.counters()
        with changing(switch, question) as changes:
            rounds = finish(receiver, question["seconds"] + LONGEST_ROUND_S)
        hosts = [json.loads(sender.communicate(timeout=10)[0]) for sender in senders]
        queue_after, tcp_after = switch.counters(), tcp_counters()
    return {
        "latency_s": rounds["latency_s"],
        "elapsed_s": rounds["start_s"][-1] + rounds["latency_s"][-1],
        "round_bytes": SENDERS * REPLY_BYTES,
        "dropped_after_warmup": queue_after["dropped"] - queue_warm["dropped"],
        "dropped": queue_after["dropped"] - queue["dropped"],
        "sent": queue_after["sent"] - queue["sent"],
        "tcp": {name: n - tcp[name] for name, n in tcp_after.items() if n != tcp[name]},
        "hosts": hosts,
        "changes": len(changes),
    }


@contextmanager
def changing(
    switch: network.Bridge | SoftwareSwitch, question: dict[str, Any]
) -> Iterator[list[float]]:
    """Changes the pace of the software switch to each of `shares` in turn every `change_every_s`,
    where the question has these; gives the shares set up to now."""
    every_s, changes = question.get("change_every_s", 0), list[float]()
    if not every_s or not isinstance(switch, SoftwareSwitch):
        yield changes
        return
    ends = threading.Event()

    def change() -> None:
        for share in cycle(question["shares"]):
            if ends.wait(every_s):
                return
            switch.set_pace(round(share * BOTTLENECK_BPS))
            changes.append(share)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield changes
    finally:
        ends.set()
        thread.join()
        switch.set_pace(BOTTLENECK_BPS)


def tcp_counters() -> Counter[str]:
    """The TCP counters of all hosts together."""
    total: Counter[str] = Counter()
    for host in [RECEIVER, *HOSTS]:
        total.update(network.tcp_counters(host))
    return total


@contextmanager
def registered(build: Path, static_window: str) -> Iterator[None]:
    """The kernel knows the static window for so long."""
    loader = start([str(build / "load_static_window"), static_window], "registered")
    try:
        yield
    finally:
        loader.kill()
        loader.wait()


@contextmanager
def started_senders(build: Path, congestion: str) -> Iterator[Sequence[subprocess.Popen[str]]]:
    senders: list[subprocess.Popen[str]] = []
    try:
        for host in HOSTS:
            senders.append(start(inside(host, str(build / "sender"), congestion), "listening"))
        yield senders
    finally:
        for sender in senders:
            sender.kill()
            sender.wait()


def start(words: Sequence[str], ready: str) -> subprocess.Popen[str]:
    """Starts a program and waits for the line by which it says that it is ready."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    if process.stdout.readline().strip() != ready:
        process.kill()
        process.wait()
        raise RuntimeError(f"'{' '.join(words)}' did not start; see above for its reason")
    return process


@contextmanager
def started_receiver(build: Path, rounds: int, seconds: int) -> Iterator[subprocess.Popen[str]]:
    addresses = [sender_address(i) for i in range(SENDERS)]
    words = [str(build / "receiver"), str(rounds), str(seconds), str(REPLY_BYTES), *addresses]
    receiver = subprocess.Popen(inside(RECEIVER, *words), stdout=subprocess.PIPE, text=True)
    try:
        yield receiver
    finally:
        receiver.kill()
        receiver.wait()


def finish(receiver: subprocess.Popen[str], limit_s: float) -> dict[str, list[float]]:
    shown, _ = receiver.communicate(timeout=limit_s)
    if receiver.returncode != 0:
        raise RuntimeError("the receiver failed; see above for its reason")
    answer: dict[str, list[float]] = json.loads(shown)
    return answer


if __name__ == "__main__":
    sys.exit(main())
