"""The real switch between virtual cables in a network namespace of its own; prints as JSON what it
has counted and what came. Run by `softswitch/test_program_namespaces.py`:
`python -m support.softswitch.switch_inside FILE`."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.softswitch.switches import Running, frame, switch

BURST = 800
MARKS = 251


def run(*words: str) -> None:
    subprocess.run(words, check=True, timeout=60)


def host(name: str) -> socket.socket:
    """The far end of a cable, with room for all that may come."""
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0008)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    end.bind((f"h{name}", 0x0800))
    return end


def burst(sender: socket.socket, count: int) -> None:
    for number in range(count):
        sender.send(frame("10.0.0.1", source=2, destination=1, size=1000, mark=number % MARKS))


def drained(running: Running, came: int) -> dict[str, Any]:
    """The ring of the collector when so many frames have come in, and it is empty."""
    while True:
        ring = running.status()["rings"][-1]
        if ring["counts"]["packets"] + ring["counts"]["drops"] >= came and not ring["packets"]:
            found: dict[str, Any] = ring["counts"]
            return found


def received(receiver: socket.socket, count: int) -> list[int]:
    """The marks of so many frames, and of those that nobody expects."""
    marks = [receiver.recv(2000)[-1] for _ in range(count)]
    receiver.setblocking(False)
    try:
        while True:
            marks.append(receiver.recv(2000)[-1])
    except BlockingIOError:
        receiver.setblocking(True)
        return marks


def main() -> None:
    run("ip", "link", "set", "lo", "up")
    for name in ("dcm", "ros"):
        run("ip", "link", "add", f"s{name}", "type", "veth", "peer", "name", f"h{name}")
        for end in ("s", "h"):
            path = Path(f"/proc/sys/net/ipv6/conf/{end}{name}/disable_ipv6")
            if path.exists():
                path.write_text("1")
            run("ip", "link", "set", f"{end}{name}", "up")
    receiver, sender = host("dcm"), host("ros")
    counts: dict[str, Any] = {}
    with switch(Path(sys.argv[1])) as running:
        burst(sender, BURST)
        counts["large"] = drained(running, BURST)
        counts["large_came"] = received(receiver, counts["large"]["packets"])
        assert running.command("set", "rings.dcm.packets=300").returncode == 0
        burst(sender, BURST)
        counts["small"] = drained(running, 2 * BURST)
        came = counts["small"]["packets"] - counts["large"]["packets"]
        counts["small_came"] = len(received(receiver, came))
        # A cable that is down for a while: what is sent meanwhile is lost, and all goes on.
        run("ip", "link", "set", "sdcm", "down")
        burst(sender, 5)
        drained(running, 2 * BURST + 5)
        run("ip", "link", "set", "sdcm", "up")
        burst(sender, 5)
        drained(running, 2 * BURST + 10)
        counts["after_down"] = received(receiver, 5)[-5:]
        counts["last"] = running.last()
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
