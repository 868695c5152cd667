"""Real Open vSwitch in its own network namespace, configured by daqloom. The program prints its
configuration and the received frames as JSON. `test_openvswitch_flows.py` runs it as `python -m
support.openvswitch_inside FOLDER SWITCH_FILE`."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from support.softswitch.switches import DAQLOOM, frame

HOSTS = ("a", "b", "c")
PATIENCE_S = 20.0


def run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if done.returncode:
        sys.exit(f"{words[0]}: {done.stderr}")
    return done.stdout


def main() -> None:
    folder, file = Path(sys.argv[1]), sys.argv[2]
    os.environ |= {f"OVS_{name}DIR": str(folder) for name in ("RUN", "LOG", "DB", "SYSCONF")}
    run("ip", "link", "set", "lo", "up")
    for host in HOSTS:
        run("ip", "link", "add", f"s{host}", "type", "veth", "peer", "name", f"h{host}")
        run("ip", "link", "set", f"s{host}", "up")
        run("ip", "link", "set", f"h{host}", "up")
    database = f"unix:{folder}/db.sock"
    schema = "/usr/share/openvswitch/vswitch.ovsschema"
    run("ovsdb-tool", "create", f"{folder}/conf.db", schema)
    with ExitStack() as stack:
        for program, *words in (
            ("ovsdb-server", f"{folder}/conf.db", f"--remote=p{database}"),
            ("ovs-vswitchd", database),
        ):
            pid = folder / f"{program}.pid"
            run(program, *words, "--detach", "--no-chdir", f"--pidfile={pid}")  # until it is ready
            stack.callback(lambda pid=pid: os.kill(int(pid.read_text()), signal.SIGKILL))
            if program == "ovsdb-server":
                run("ovs-vsctl", f"--db={database}", "--no-wait", "init")
        configure = [*DAQLOOM, "topology", "configure", file, "--datapath", "netdev"]
        for _ in range(2):  # the second time nothing is there twice
            run(*configure, "--database", database, "--folder", str(folder))
        vsctl = ("ovs-vsctl", f"--db={database}", "--bare")
        print(
            json.dumps(
                {
                    "rates": run(*vsctl, "--columns=other_config", "list", "queue").split(),
                    "queues": len(run(*vsctl, "--columns=_uuid", "list", "queue").split()),
                    "qos": len(run(*vsctl, "--columns=_uuid", "list", "qos").split()),
                    "flows": run(
                        *("ovs-ofctl", "--protocols=OpenFlow14", "--names", "--no-stats"),
                        *("dump-flows", f"unix:{folder}/br0.mgmt"),
                    ).splitlines(),
                    "came": came(),
                }
            )
        )


def came() -> dict[str, list[int]]:
    """Send frames from host b and return the marks of the frames that each other host received."""
    sockets = {host: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0008) for host in HOSTS}
    for host, each in sockets.items():
        each.bind((f"h{host}", 0x0800))
        each.settimeout(PATIENCE_S)
    sent = [
        frame("10.0.0.1", source=2, destination=1, mark=1),
        frame("10.0.0.1", source=2, destination=1, mark=2, to_port=123),
        frame("10.0.0.9", source=2, destination=9, mark=3),
        frame("10.0.0.1", source=2, destination=1, mark=4),
    ]
    for each in sent:
        sockets["b"].send(each)
    found: dict[str, list[int]] = {"a": [], "c": []}
    while found["a"][-1:] != [4]:
        found["a"].append(sockets["a"].recv(2000)[-1])
    found["c"].append(sockets["c"].recv(2000)[-1])
    return found


if __name__ == "__main__":
    main()
