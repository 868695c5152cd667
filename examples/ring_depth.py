"""Draw where the packets of a burst wait, with and without a pace in the software switch.

Run it as `python examples/ring_depth.py ring-depth.png`. 110 sources answer one collector at once,
9790 packets, through a software switch whose port has 10 Gb/s, and a further switch behind it whose
port to the collector has 1 Gb/s. With a pace of 0.78 Gb/s the burst waits in the ring; without one
it is handed on to the next hop, which then needs the memory.
"""

import sys

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

import daqloom

CASES = {"0.78 Gb/s": "paced at 0.78 Gb/s", "0 b/s": "without a pace"}
SHARED = {"run.duration": "400 ms", "run.warmup": "0 s", "event.rate": "5 Hz"}
# The top-of-rack switch is recorded: it is the software switch, or the one behind that.
ITSELF = {"network.switch.tor.model": "software", "network.switch.tor.queue_packets": 14_000}
BEHIND = {
    "network.switch.core.model": "software",
    "network.switch.core.queue_packets": 14_000,
    "network.links.uplink.rate": "10 Gb/s",
    "network.switch.tor.model": "infinite",
    "network.links.access.rate": "1 Gb/s",
}


def depth(changes: dict[str, object]) -> tuple[list[float], list[float]]:
    """Time since the event's begin (ms), and bytes held (MB)."""
    system = daqloom.load("lossless-switch-all-to-one", SHARED | changes)
    held = system.simulate().series["tor_occupancy"]
    return [1e3 * (t - 0.2) for t in held["time_s"]], [b / 1e6 for b in held["max_bytes"]]


def draw(axes: Axes, pace: str) -> None:
    """Draw the depth of the ring, and of the queue behind it."""
    axes.step(*depth(ITSELF | {"network.switch.tor.pace": pace}), label="ring of the switch")
    behind = BEHIND | {"network.switch.core.pace": pace}
    axes.step(*depth(behind), label="queue of the next hop")
    axes.set(title=CASES[pace], xlabel="time (ms)", xlim=(-5, 165), ylim=(0, 16))


def main() -> None:
    """Draw both."""
    figure, both = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
    for axes, pace in zip(both, CASES, strict=True):
        draw(axes, pace)
    both[0].set_ylabel("held (MB)")
    both[0].legend()
    figure.savefig(sys.argv[1], dpi=150)


if __name__ == "__main__":
    main()
