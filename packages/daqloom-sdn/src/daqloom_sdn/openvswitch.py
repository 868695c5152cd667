"""Export of a software switch's file to a real Open vSwitch: bridge, ports, queues, flows.

Open vSwitch's own programs apply it: `ovs-vsctl` sets bridge, ports and queue rates in one
transaction, and `ovs-ofctl` sets the flows in one bundle. An earlier configuration of the same
bridge is replaced."""

import ipaddress
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from daqloom.results.errors import MeasureError
from daqloom.softswitch.document import Matching, SwitchFile

Datapath = Literal["system", "netdev"]
MARK = "external_ids:daqloom"
"""Key in external_ids of QoS and queue rows that this module writes; its value is the bridge."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,15}")
"""Pattern for names of bridges and interfaces."""
HIGHEST = 65_535


@dataclass(frozen=True)
class OpenVSwitch:
    """A running Open vSwitch: its database, and the folder of its sockets; empty: the defaults."""

    bridge: str
    database: str = ""
    folder: str = ""

    def commands(self, switch: SwitchFile, datapath: Datapath) -> Iterator[str]:
        """Yield the commands that would apply a switch's file. Raises MeasureError."""
        words = transaction(switch, self.bridge, datapath)
        yield f"ovs-vsctl {shlex.join(words)}".replace(" -- ", " \\\n    -- ")
        for flow in flows_of(switch):
            yield f"ovs-ofctl --names add-flow {self.bridge} {shlex.quote(flow)}"

    def write(self, switch: SwitchFile, datapath: Datapath) -> None:
        """Apply a switch's file to the bridge. Raises MeasureError."""
        for program in ("ovs-vsctl", "ovs-ofctl"):
            if shutil.which(program) is None:
                raise MeasureError(
                    f"{program} is not here; install Open vSwitch (Debian and Ubuntu: apt-get "
                    "install openvswitch-switch)"
                )
        old = [
            (table, uuid)
            for table in ("qos", "queue")
            for uuid in self._vsctl(
                "--bare", "--columns=_uuid", "find", table, f"{MARK}={self.bridge}"
            ).split()
        ]
        self._vsctl(*transaction(switch, self.bridge, datapath, old))
        flows = "\n".join(("delete", *(f"add {flow}" for flow in flows_of(switch))))
        self._run(
            "ovs-ofctl",
            *("--protocols=OpenFlow14", "--names", "--bundle", "--timeout=30"),
            *("add-flows", self._management(), "-"),
            text=flows,
        )

    def _management(self) -> str:
        return f"unix:{self.folder}/{self.bridge}.mgmt" if self.folder else self.bridge

    def _vsctl(self, *words: str) -> str:
        where = (f"--db={self.database}",) if self.database else ()
        return self._run("ovs-vsctl", "--timeout=30", *where, *words)

    @staticmethod
    def _run(*words: str, text: str = "") -> str:
        done = subprocess.run(words, input=text, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise MeasureError(f"{words[0]} refuses the configuration: {reason[:300]}")
        return done.stdout


def transaction(
    switch: SwitchFile, bridge: str, datapath: Datapath, old: Sequence[tuple[str, str]] = ()
) -> list[str]:
    """Return the arguments of `ovs-vsctl` that configure a bridge like the switch. `old`: table and
    UUID of rows of its earlier configuration. Raises MeasureError."""
    if not _NAME.fullmatch(bridge):
        raise MeasureError(f'"{bridge[:40]}" is no name of a bridge; expected one such as br0')
    commands: list[list[str]] = [
        ["--may-exist", "add-br", bridge],
        # OpenFlow 1.4 has bundles, which change all flows at once.
        ["set", "bridge", bridge, f"datapath_type={datapath}", "fail_mode=secure"],
        ["set", "bridge", bridge, "protocols=OpenFlow10,OpenFlow13,OpenFlow14"],
    ]
    for port in switch.ports.values():
        name, kind = interface(port.device)
        commands.append(["--may-exist", "add-port", bridge, name])
        commands.append(["clear", "port", name, "qos"])
        if kind:
            commands.append(["set", "interface", name, "type=dpdk", f"options:dpdk-devargs={kind}"])
    commands += [["destroy", table, uuid] for table, uuid in old]
    for name in switch.ports:
        commands += _qos(switch, name, f"{MARK}={bridge}")
    return [word for command in commands for word in ("--", *command)]


def _qos(switch: SwitchFile, name: str, mark: str) -> Iterator[list[str]]:
    """Yield the commands that create a port's paced queues."""
    label = name.replace(".", "-")
    paces = {number: switch.rings[ring].rate for number, ring in switch.queues(name).items()}
    queues = {number: rate for number, rate in paces.items() if rate}
    for number, rate in queues.items():
        yield [f"--id=@q{number}-{label}", "create", "queue", f"other_config:max-rate={rate}", mark]
    if queues:
        created = (f"queues:{number}=@q{number}-{label}" for number in queues)
        yield [f"--id=@qos-{label}", "create", "qos", "type=linux-htb", mark, *created]
        yield ["set", "port", interface(switch.ports[name].device)[0], f"qos=@qos-{label}"]


def flows_of(switch: SwitchFile) -> Iterator[str]:
    """Yield the switch's flows in the syntax of `ovs-ofctl`."""
    numbers = {
        name: number for port in switch.ports for number, name in switch.queues(port).items()
    }
    for name, ring in switch.rings.items():
        out = interface(switch.ports[ring.port].device)[0]
        queue = f"set_queue:{numbers[name]}," if ring.rate else ""
        yield f'{_match(switch, ring)},actions={queue}output:"{out}"'
    for rule in switch.rules.values():
        if rule.port is not None:
            action = f'output:"{interface(switch.ports[rule.port].device)[0]}"'
        else:
            action = "drop" if rule.action == "drop" else "normal"
        yield f"{_match(switch, rule)},actions={action}"
    for fixed in switch.addresses.fixed.values():
        vlan = f",dl_vlan={fixed.vlan}" if fixed.vlan else ""
        out = interface(switch.ports[fixed.port].device)[0]
        yield f'priority=1,dl_dst={fixed.address}{vlan},actions=output:"{out}"'
    yield "priority=0,actions=normal"


def _match(switch: SwitchFile, given: Matching) -> str:
    if not given.protocol and (given.from_port is not None or given.to_port is not None):
        raise MeasureError(
            "Open vSwitch cannot match a port of TCP or UDP without protocol; give protocol"
        )
    # Priorities lie above those of fixed addresses (1) and learned addresses (0).
    parts = [f"priority={min(HIGHEST, given.priority + 2)}"]
    network = ipaddress.ip_network(given.to) if given.to else None
    family = "" if network is None or network.version == 4 else "6"
    if given.protocol:
        parts.append(f"{given.protocol}{family}")
    elif network is not None:
        parts.append("ipv6" if family else "ip")
    elif given.ethertype is not None:
        parts.append(f"dl_type=0x{given.ethertype:04x}")
    if given.ingress:
        parts.append(f'in_port="{interface(switch.ports[given.ingress].device)[0]}"')
    if given.destination:
        parts.append(f"dl_dst={given.destination}")
    if given.vlan is not None:
        parts.append(f"dl_vlan={given.vlan}")
    if network is not None:
        parts.append(f"{'ipv6_dst' if family else 'nw_dst'}={network}")
    for key, port in (("tp_src", given.from_port), ("tp_dst", given.to_port)):
        if port is not None:
            parts.append(f"{key}={port}")
    return ",".join(parts)


def interface(device: str) -> tuple[str, str]:
    """Return the interface name of a port and, for a network card of DPDK, its PCI address. Raises
    MeasureError for a device that Open vSwitch does not support."""
    first, _, arguments = device.partition(",")
    if ":" in first and first[0] in "0123456789abcdefABCDEF":
        return f"dpdk-{first[-7:].replace(':', '-').replace('.', '-')}", first
    options = dict(each.partition("=")[::2] for each in arguments.split(","))
    name = options.get("iface", first if not arguments else "")
    if not _NAME.fullmatch(name):
        raise MeasureError(
            f"Open vSwitch does not support the device {device[:80]}; expected an interface of "
            "Linux, a packet socket on one, or the PCI address of a card"
        )
    return name, ""
