"""A state machine of an experiment that steers a run over gRPC.

python state_machine.py CYCLES [HOST:PORT]

Each state has one command of the run control, and the phase that it leads to. The machine takes a
run through them, and starts it again when it is in error.
"""

import sys
import time

from daqloom.control.protocol.states import Phase
from daqloom.control.status import Request, Status, steer, steer_until
from daqloom.results.errors import MeasureError

RUN_S = 0.5
"""Length of a run (s)."""
TIMEOUT_S = 60.0


class Machine:
    """States IDLE, CONFIGURED and TAKING, as a run control of an experiment has them."""

    def __init__(self, address: str | None = None) -> None:
        self.state = "IDLE"
        self._address = address

    def command(self, name: str) -> Status:
        """Carry out a command and wait for its phase. Raises MeasureError."""
        status = steer_until(Request(command=name), self._address, None, TIMEOUT_S)
        self.state = {Phase.READY: "CONFIGURED", Phase.RUNNING: "TAKING"}[status.phase]
        return status

    def status(self) -> Status:
        """Return the status of the run."""
        return steer(Request(command="status"), self._address)

    def take_data(self, length_s: float) -> int:
        """Take data for some time, and start again after an error. Return the run number."""
        self.command("start")
        until_s = time.monotonic() + length_s
        while time.monotonic() < until_s:
            if self.status().phase is Phase.ERROR:
                self.command("configure")
                self.command("start")
            time.sleep(0.1)
        return self.command("stop").number or 0


def main(cycles: int, address: str | None) -> None:
    """Take some runs."""
    machine = Machine(address)
    machine.command("configure")
    for _ in range(cycles):
        number = machine.take_data(RUN_S)
        built = sum(unit.engine_counters.meps_built or 0 for unit in machine.status().units)
        print(f"run {number}: {machine.state}, {built} MEPs built until now", flush=True)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
    except MeasureError as error:
        sys.exit(f"state_machine.py: {error}")
