"""A rack in a laboratory of network namespaces."""

from daqloom.deployment.scenarios import load
from daqloom.scenario.schema.models import Scenario

FRAMES = 20
"""That the builder's port holds."""
PORT = 5005
SEND = f"""
import socket, sys
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[2])):
    out.sendto(bytes(1472), (sys.argv[1], {PORT}))
"""
RECEIVE = f"""
import select, socket, sys
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
here.bind(("", {PORT}))
print("ready", flush=True)
count = 0
while here in select.select([here, sys.stdin], [], [])[0]:
    here.recv(2000)
    count += 1
print(count, flush=True)
"""
"""Counter of datagrams until its standard input ends and none is left."""


def rack(**changes: object) -> Scenario:
    small = {"readout__units": 2, "builders__units": 1, "measure__duration": "4 s"}
    small |= {"network__switch__tor__model": "drop-tail", "event__size": "20 kB"}
    if "network__switch__tor__model" not in changes:
        small["network__switch__tor__queue_packets"] = FRAMES
    keys = {key.replace("__", "."): value for key, value in (small | changes).items()}
    return load("lab-rack", keys)
