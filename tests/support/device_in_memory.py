"""A device that is in memory, with an adapter that carries out its orders, or does not."""

from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint

from daqloom.device import registry
from daqloom.device.adapter import AdapterError, AdapterOptions, PortBuffer, PortCount

PORTS = ("p1", "p2")


@dataclass
class Device:
    """State of the switch, and its faults."""

    buffers: dict = field(default_factory=lambda: {p: PortBuffer(limit_bytes=1000) for p in PORTS})
    counts: dict = field(default_factory=lambda: {p: PortCount(0, 0, 0) for p in PORTS})
    rounds_to: int = 1
    ignores: bool = False
    fails_after: int = -1
    """Changes after which each further one is refused; -1: never."""
    orders: list = field(default_factory=list)
    identity: str = "serial 1"
    after_restore: int = 0
    """Limit that another program sets a port to once it was set back and read; 0: none does."""

    def set(self, port, buffer, steps=None):
        if self.fails_after == 0:
            raise AdapterError(f"{port}: the switch has refused")
        self.fails_after -= self.fails_after > 0
        if not self.ignores:
            steps = steps or self.rounds_to
            limit = buffer.limit_bytes // steps * steps
            self.buffers[port] = replace(buffer, limit_bytes=limit)


DEVICE = Device()


class InMemory:
    Options = AdapterOptions
    settable = frozenset({"limit_bytes"})
    rounding = 0.01

    def __init__(self, options, ports, credentials):
        self.ports, self.credentials = ports, credentials

    def __enter__(self):
        DEVICE.orders.append("enter")
        return self

    def __exit__(self, *_):
        if DEVICE.after_restore and "restore" in DEVICE.orders:
            DEVICE.set("p1", PortBuffer(limit_bytes=DEVICE.after_restore))
        DEVICE.orders.append("exit")

    def identity(self):
        return DEVICE.identity

    def plan(self, target):
        return [f"set {port} {target.limit_bytes}" for port in self.ports]

    def save(self):
        return {port: DEVICE.buffers[port].limit_bytes for port in self.ports}

    def apply(self, target):
        DEVICE.orders.append(f"apply {target.limit_bytes}")
        for port in self.ports:
            DEVICE.set(port, target)

    def applied(self):
        return {port: DEVICE.buffers[port] for port in self.ports}

    def restore(self, saved):
        DEVICE.orders.append("restore")
        for port, limit in saved.items():
            DEVICE.set(port, PortBuffer(limit_bytes=limit), steps=1)

    def begin(self):
        DEVICE.orders.append("begin")

    def read(self):
        return {port: DEVICE.counts[port] for port in self.ports}


class Counter:
    """One that only counts."""

    Options = AdapterOptions

    def __init__(self, options, ports, credentials):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def begin(self):
        pass

    def read(self):
        return dict(DEVICE.counts)


def installed(monkeypatch):
    """Have the adapters "memory" and "counter" among those that there are."""
    DEVICE.__init__()
    points = [
        EntryPoint("memory", "support.device_in_memory:InMemory", registry.GROUP),
        EntryPoint("counter", "support.device_in_memory:Counter", registry.GROUP),
        EntryPoint("elsewhere", "no_such_package.adapters:Some", registry.GROUP),
    ]
    monkeypatch.setattr("daqloom.base.plugins.entry_points", lambda group: points)
    return DEVICE
