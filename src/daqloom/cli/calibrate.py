"""`daqloom calibrate`: measures this machine's CPU times, as host parameters of simulations."""

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
        str,
        option(
            "NAME", 'Over TCP: congestion control, such as "cubic"; by default that of the system.'
        ),
    ] = "",
    units: Annotated[
        int,
        option(
            "N",
            "Number of units; of more than two, one sends requests to all others at once.",
            min=2,
            max=256,
        ),
    ] = 2,
    latencies: Annotated[
        Path | None,
        option(
            "FILE",
            "Write all latencies, one in microseconds a line, as a file for hosts.latency.file.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure the CPU times and latencies of this machine, and print them as the table [hosts].

    Two processes exchange a message through the transport of real units: its CPU time is
    `message_cost`, and the rest of half a round trip is `latency`. With more than two --units, one
    unit sends requests to all others at once, as a builder unit does; `latency` is then the time
    from posting a message until its receipt, which varies because all units share the machine.
    `send_rate` and `receive_rate` are the rates at which a core generates and sends, or receives
    and checks data while all cores do so. `local_rate` is the rate at which a thread copies data.
    With this table in a scenario, `daqloom simulate` simulates the hosts of this machine, for a
    comparison with a measurement. If units share cores, add their number: `shared_cores = 2`.

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
    usual, seldom = (
        with_unit(float(f"{late[percentile]:.2g}"), "s") for percentile in ("p50", "p99")
    )
    print(f"# By `daqloom calibrate`: {found.transport}, {found.where}, {found.units} units.")
    print(f"# A timer wakes a process {usual} late, one in a hundred {seldom}.")
    print(found.table(str(latencies) if latencies else ""))
