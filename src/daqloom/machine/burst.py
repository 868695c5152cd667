"""Program that sends and receives bursts of UDP packets on a host; for each step it reads a JSON
line and answers with one.

`{"listen": NETWORK}` opens a socket and returns its address. `{"receive": N, "trial": T, "quiet_s":
S}` counts packets of a trial until N have arrived, or none for S seconds. `{"send": N, "trial": T,
"to": [ADDRESS, PORT], "bytes": B}` sends N packets of B bytes of payload back to back."""

import ipaddress
import json
import socket
import struct
import sys
from typing import Any

from daqloom.machine.addresses import own_address
from daqloom.results.errors import MeasureError

SO_RXQ_OVFL = 40
UDP_SEGMENT = 103
"""Socket option for many packets in one call (udp(7)); single calls would leave gaps."""
MOST_CALL_BYTES = 60_000
MOST_PACKETS = 1_000_000
BUFFER_BYTES = 64 << 20
_TRIAL = struct.Struct("=Q")


class Burst:
    """UDP socket of this host, with the steps that the program performs."""

    def __init__(self) -> None:
        self._socket: socket.socket
        self._lost = 0
        """Packets dropped since the socket was opened, because its buffer was full."""

    def listen(self, network: str) -> dict[str, Any]:
        """Open a socket at this host's address in `network`. Raises MeasureError."""
        address = own_address("", network)
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            self._socket.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
        self._socket.bind((address, 0))
        return {"address": address, "port": self._socket.getsockname()[1]}

    def receive(self, packets: int, trial: int, quiet_s: float) -> dict[str, Any]:
        """Count the received packets of a trial."""
        self._socket.settimeout(quiet_s)
        lost, received = self._lost, 0
        while received < packets:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(_TRIAL.size, 64)
            except TimeoutError:
                break
            for level, kind, value in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, SO_RXQ_OVFL):
                    (self._lost,) = struct.unpack("=I", value[:4])
            received += data[: _TRIAL.size] == _TRIAL.pack(trial)
        return {"received": received, "overflowed": self._lost - lost}

    def send(self, packets: int, trial: int, to: list[Any], size_bytes: int) -> dict[str, Any]:
        """Send all packets of a trial back to back."""
        self._socket.settimeout(None)
        packet = _TRIAL.pack(trial).ljust(size_bytes, b"\0")
        at_once = max(1, MOST_CALL_BYTES // size_bytes)
        left, address = packets, (str(to[0]), int(to[1]))
        while left and at_once > 1:
            now = min(at_once, left)
            size = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", size_bytes))]
            try:
                self._socket.sendmsg([packet * now], size, 0, address)
            except OSError:  # devices without checksum offload cannot segment
                break
            left -= now
        for _ in range(left):
            self._socket.sendto(packet, address)
        return {"sent": packets}


def main() -> int:
    """Answer one line after the other until the input ends."""
    burst = Burst()
    for line in sys.stdin:
        step = json.loads(line)
        if "listen" in step:
            answer = burst.listen(step["listen"])
        elif "receive" in step:
            answer = burst.receive(step["receive"], step["trial"], step["quiet_s"])
        else:
            packets = min(step["send"], MOST_PACKETS)
            answer = burst.send(packets, step["trial"], step["to"], step["bytes"])
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (MeasureError, OSError) as error:
        sys.exit(str(error))
