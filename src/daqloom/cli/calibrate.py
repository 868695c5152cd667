"""`daqloom calibrate`: what this machine's hosts cost a simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from daqloom.base import lazy
from daqloom.base.output import write_text
from daqloom.cli.console.terminal import check_writable, note, print_json
from daqloom.cli.options import Json, Quiet, option
from daqloom.results.metrics import with_unit

with lazy.imports():
    from daqloom.machine import calibrate as machine_calibrate


MICRO = 1e6


def calibrate(
    transport: Annotated[
        str, option("NAME", 'Transport of units: "tcp", "shm" or "libfabric:PROVIDER".')
    ] = "tcp",
    congestion: Annotated[
        str, option("NAME", 'Over TCP: congestion control, such as "cubic"; else the system\'s.')
    ] = "",
    units: Annotated[
        int,
        option(
            "N",
            "Units of this machine; of more than two, one asks all others at once.",
            min=2,
            max=256,
        ),
    ] = 2,
    latencies: Annotated[
        Path | None,
        option("FILE", "Write each latency, one in microseconds a line, for hosts.latency.file."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what this machine's hosts take time for, and print it as the table [hosts].

    Two processes send a message to and fro by the transport of real units: the CPU time of a
    message is `message_cost`, what half a round trip takes besides is `latency`. With --units
    one asks all others at once, as a builder asks readout units, and `latency` is from when a
    message is posted until its unit has received it, which varies as all share the machine.
    `send_rate` and `receive_rate` have the CPU time of a byte: made by a source and sent, taken
    in and checked by a sink, while all cores do so. `local_rate` is the rate of copies of a
    thread. Where units share cores, give their number: `shared_cores`. Put the table into a
    scenario, and `daqloom simulate` has the hosts of this machine: they are what a measurement
    on it has.

    \b
    Examples:
      daqloom calibrate
      daqloom calibrate --units 13 --latencies latencies.txt
      daqloom calibrate --transport shm --json
    """
    if latencies:
        check_writable(latencies, "--latencies")
    if not quiet:
        note("messages travel to and fro, for some seconds")
    found = machine_calibrate.calibrate(transport, congestion, units=units)
    if latencies:
        lines = (f"{MICRO * each:.3f}\n" for each in found.latencies_s)
        write_text(latencies, "".join(lines))
    if json:
        print_json(found.to_dict())
        return
    late = found.to_dict()["timer_lateness_s"]
    usual, seldom = (with_unit(float(f"{late[of]:.2g}"), "s") for of in ("p50", "p99"))
    print(f"# By `daqloom calibrate`: {found.transport}, {found.where}, {found.units} units.")
    print(f"# A timer wakes a process {usual} late, one in a hundred {seldom}.")
    print(found.table(str(latencies) if latencies else ""))
