"""A run as process variables (PVs) of EPICS, which operators' displays and archivers read.

python epics.py PREFIX [HOST:PORT]

PREFIX:phase, :units, :members, :run_number, :meps_hz, :throughput_mbps and :refusal follow the
run. A command written to PREFIX:command, such as `start`, is carried out. Needs caproto: pip
install 'daqloom[epics]'.
"""

import asyncio
import sys
import time
from collections.abc import Mapping
from typing import Any

from caproto import ChannelType
from caproto.server import PVGroup, pvproperty
from caproto.server import run as serve

from daqloom.control.status import Request, Status, steer
from daqloom.results.errors import MeasureError

PERIOD_S = 0.2
COMMANDS = ("configure", "start", "stop", "exit")


class Rates:
    """Rates between two statuses."""

    def __init__(self) -> None:
        self._last: tuple[float, float, float] | None = None

    def update(self, status: Status) -> Mapping[str, float]:
        """Return the rates since the last status."""
        counted = [unit.engine_counters for unit in status.units]
        meps = float(sum(each.meps_delivered or 0 for each in counted))
        size = float(sum(each.mfp_bytes_built or 0 for each in counted))
        last, self._last = self._last, (status.time_s, meps, size)
        if last is None or status.time_s <= last[0]:
            return {}
        passed_s = status.time_s - last[0]
        return {
            "meps_hz": max(0.0, meps - last[1]) / passed_s,
            "throughput_mbps": max(0.0, size - last[2]) * 8e-6 / passed_s,
        }


class Run(PVGroup):
    """PVs of a run."""

    phase = pvproperty(value="unknown", dtype=ChannelType.STRING, read_only=True)
    units = pvproperty(value=0, read_only=True)
    members = pvproperty(value=0, read_only=True)
    run_number = pvproperty(value=0, read_only=True)
    meps_hz = pvproperty(value=0.0, read_only=True)
    throughput_mbps = pvproperty(value=0.0, read_only=True)
    refusal = pvproperty(value="", max_length=1000, read_only=True)
    command = pvproperty(value="", dtype=ChannelType.STRING)

    address: str | None = None

    @command.putter
    async def command(self, instance: Any, value: str) -> str:
        """Carry out a command; a mistake is in PREFIX:refusal."""
        if value not in COMMANDS:
            await self.refusal.write(f"the command is one of {', '.join(COMMANDS)}")
            return ""
        await self._steer(value)
        return value

    @phase.startup
    async def phase(self, instance: Any, async_lib: Any) -> None:
        """Follow the run."""
        rates = Rates()
        while True:
            if status := await self._steer("status"):
                members = sum(unit.member for unit in status.units)
                values = {
                    "phase": str(status.phase),
                    "units": len(status.units),
                    "members": members,
                    "run_number": status.number or 0,
                    **rates.update(status),
                }
                for name, value in values.items():
                    await getattr(self, name).write(value)
            await asyncio.sleep(PERIOD_S)

    async def _steer(self, command: str) -> Status | None:
        """Return the status after a request; None without a run control."""
        try:
            status = await asyncio.to_thread(steer, Request(command=command), self.address)
        except MeasureError as error:
            await self.refusal.write(str(error)[:1000])
            await self.phase.write("unreachable")
            return None
        await self.refusal.write(status.refusal)
        return status


def main(prefix: str, address: str | None) -> None:
    """Serve the PVs on loopback; EPICS_CA_SERVER_PORT sets the port."""
    run = Run(prefix=f"{prefix}:")
    run.address = address
    started = time.strftime("%H:%M:%S")
    print(f"{len(run.pvdb)} PVs since {started}", flush=True)
    serve(run.pvdb, interfaces=["127.0.0.1"], log_pv_names=False)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
