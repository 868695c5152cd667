"""Event builder under `daqloom control`, in network namespaces of its own, for faults on purpose.

Over tcp each unit has a network namespace with a link to a bridge, on which the run control is.
Otherwise the units are children of the run control and share its loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from daqloom.control.calls.certificates import make_certificates
from daqloom.control.protocol.states import Phase
from daqloom.control.status import Request, Status, steer, steer_until
from daqloom.machine.namespace import new_namespace
from daqloom.results.errors import MeasureError

CONTROL, PORT = "10.0.0.1", 7000
MARK = "DAQLOOM_FAULTS"
"""Environment variable of this program and all that it has started."""
PHASES = ("running", "halting", "preparing", "connecting", "starting", "ready", "waiting")
FAULT_TIMEOUT_S, CONSUMER_TIMEOUT_S, HOOK_TIMEOUT_S = 1.0, 3.0, 2.0
RESET_S, STEADY_S = 3.0, 1.3
LARGEST_RECORDING = "1g"
MOST_S = 180.0
"""Limit on each wait for the run (s)."""
SETTINGS = (
    "measure.heartbeat=100 ms",
    f"measure.fault_timeout={FAULT_TIMEOUT_S:g} s",
    "measure.supervise=true",
    "measure.sink=file",
    "measure.output_buffer=16 MB",
    "measure.stream_buffer=16 MB",
    "event.rate=2 kHz",
    "event.packing=20",
    "event.fragment_size=200 B",
)
SINKS = {
    "file": ("measure.sink=file",),
    "user": (
        "measure.sink=user",
        "measure.consumers=exclusive",
        f"measure.consumer_timeout={CONSUMER_TIMEOUT_S:g} s",
    ),
}
HOOK = """#!/bin/sh
case "$(cat "$DAQLOOM_HOOK_WHEN-$DAQLOOM_HOOK_TRANSITION" 2> /dev/null)" in
fails) echo no; exit 1 ;;
hangs) exec sleep 600 ;;
esac
echo yes
"""
HOOKS = (("before", "start"), ("before", "stop"), ("after", "start"), ("after", "stop"))


def enter_namespaces() -> None:
    """Start this program again with networks and mounts of its own, which end with it."""
    if MARK not in os.environ:
        own = f"ip link set lo up && exec {sys.executable} " + '"$@"'
        os.environ[MARK] = str(os.getpid())
        os.execvp("unshare", ["unshare", "--net", "--mount", "sh", "-c", own, "sh", *sys.argv])


class Network:
    """Namespaces of the units, with a bridge to the run control; a context."""

    def __init__(self, units: int) -> None:
        self._stack = ExitStack()
        self.hosts = [new_namespace(self._stack) for _ in range(units)]
        subprocess.run(["ip", "link", "add", "name", "bridge", "type", "bridge"], check=True)
        self.link("bridge", "up")
        ip("address", "add", f"{CONTROL}/24", "dev", "bridge")
        for unit, host in enumerate(self.hosts):
            peer = ("peer", "name", "eth0", "netns", str(host.holder))
            ip("link", "add", "name", f"u{unit}", "type", "veth", *peer)
            ip("link", "set", f"u{unit}", "up", "master", "bridge")
            own = f"address add {address(unit)}/24 dev eth0"
            host.batch("ip", ["link set lo up", own, "link set eth0 up"])

    def link(self, name: str, state: str) -> None:
        ip("link", "set", name, state)

    def blackhole(self, unit: int, to: str, change: str) -> None:
        """Drop ("add") or pass ("delete") all packets from a unit to an address."""
        self.hosts[unit].run("ip", "route", change, "blackhole", f"{to}/32")

    def settings(self, folder: Path) -> list[str]:
        """Make certificates, and a program `ssh` in `folder` that starts a unit in its namespace;
        return the keys of the run."""
        make_certificates(folder / "certificates", [CONTROL])
        cases = "\n".join(
            f'unit{unit}) exec {" ".join(host.enter)} sh -c "exec $3" ;;'
            for unit, host in enumerate(self.hosts)
        )
        ssh = folder / "ssh"  # ssh OPTIONS -- HOST COMMAND
        ssh.write_text(
            f'#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\ncase "$2" in\n{cases}\nesac\n'
        )
        ssh.chmod(0o755)
        return [
            "measure.launch=ssh",
            f"measure.hosts={json.dumps([f'unit{unit}' for unit in range(len(self.hosts))])}",
            f"measure.bind={CONTROL}",
            f"measure.port={PORT}",
            f"measure.certificates={folder / 'certificates'}",
        ]

    def close(self) -> None:
        self._stack.close()


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def address(unit: int) -> str:
    return f"10.0.0.{10 + unit}"


class System:
    """A run in a folder, under one run control after another; a context."""

    def __init__(
        self,
        folder: Path,
        units: int,
        transport: str,
        more: Sequence[str] = (),
        settings: Sequence[str] = SETTINGS,
    ) -> None:
        self.folder, self.units, self.transport = folder / "run", units, transport
        self.recording, self.hooks = folder / "recording", folder / "hooks"
        for each in (self.recording, self.hooks, folder / "tmp"):
            each.mkdir()
        tmpfs = ["mount", "-t", "tmpfs", "-o", f"size={LARGEST_RECORDING}", "recording"]
        subprocess.run([*tmpfs, str(self.recording)], check=True)
        self.network = Network(units) if transport != "shm" else None
        self.settings = [
            *settings,
            f"measure.transport={transport}",
            f"measure.sink_files={self.recording}",
            f"readout.units={units}",
            f"network.hosts_per_leaf={units}",
            *(self.network.settings(folder) if self.network else ()),
            *more,
        ]
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        os.environ["XDG_RUNTIME_DIR"] = str(folder)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        os.environ["TMPDIR"] = str(folder / "tmp")
        self._write_hooks()
        self.sinks = ["file"]
        """Sink of each setup until now."""
        self.control: subprocess.Popen[str]
        self.lines: list[str] = []
        """Log of all run controls."""
        self._changed = threading.Condition()

    def __enter__(self) -> System:
        self.start_control()
        return self

    def __exit__(self, *_: object) -> None:
        for pid in (self.control.pid, *self.children(), *self._stored_processes()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.control.wait()
        if self.network:
            self.network.close()
        for folder in self._pages():
            shutil.rmtree(folder)
        subprocess.run(["umount", "--lazy", str(self.recording)], check=True)

    # ---- run control -------------------------------------------------------------------------

    def start_control(self) -> None:
        """Begin the run, or continue it from its folder."""
        command = [sys.executable, "-m", "daqloom", "control", "up", "--folder", str(self.folder)]
        command += ["--hooks", str(self.hooks / "hooks.toml")]
        if not self.folder.exists():
            command += ["laptop", "--start"]
            for each in self.settings:
                command += ["--set", each]
        self.control = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._read, args=(self.control,), daemon=True).start()

    def _read(self, control: subprocess.Popen[str]) -> None:
        assert control.stdout
        for line in control.stdout:
            with self._changed:
                self.lines.append(line.rstrip())
                self._changed.notify_all()

    def children(self) -> list[int]:
        """Return the run control itself, which its supervisor has started."""
        with suppress(OSError):
            path = Path(f"/proc/{self.control.pid}/task/{self.control.pid}/children")
            return [int(pid) for pid in path.read_text().split()]
        return []

    def kill_control(self, *, with_supervisor: bool) -> None:
        victims = self.children()
        if with_supervisor:
            os.kill(self.control.pid, signal.SIGKILL)
            self.control.wait()
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def status(self) -> Status | None:
        """Return the status of the run; None while there is no run control."""
        with suppress(MeasureError, OSError):
            return steer(Request(command="status"), None)
        return None

    def request(self, command: str, **fields: Any) -> None:
        """Send a request, and wait for its phase, if any. Raises MeasureError."""
        request = Request(command=command, **fields)  # type: ignore[arg-type]
        if command in ("configure", "start", "stop"):
            steer_until(request, None, None, MOST_S)
        else:
            steer(request, None)

    def use_sink(self, sink: str) -> None:
        """Let the run have another sink from now on, by a new setup."""
        if sink != self.sinks[-1]:
            self.request("stop")
            self.request("configure", settings=SINKS[sink])
            self.request("start")
            self.sinks.append(sink)
            self.until_whole()

    def until_phase(self, phase: str, since: int) -> None:
        """Wait until the log has entered a phase, after its first `since` lines."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: any(is_entry(line, phase) for line in self.lines[since:]), MOST_S
            ):
                raise RuntimeError(self.report(f"the run is not {phase}"))

    def started_again(self) -> None:
        """Start a run that its run control had stopped before it was killed."""
        while (now := self.until_answer()).phase not in (Phase.READY, Phase.RUNNING):
            time.sleep(0.1)
        if now.phase is Phase.READY:
            self.request("start")

    def until_answer(self) -> Status:
        """Wait for a run control, and return its status."""
        ends_s = time.monotonic() + MOST_S
        while (now := self.status()) is None:
            if time.monotonic() > ends_s:
                raise RuntimeError(self.report("no run control answers"))
            time.sleep(0.1)
        return now

    def until_whole(self) -> tuple[Status, float]:
        """Wait until all units build events in an epoch for longer than the fault timeout. Return
        the status then, and since when they do."""
        began_s = since_s = time.monotonic()
        first: Status | None = None
        while time.monotonic() < began_s + MOST_S:
            if code := self.control.poll():
                if code <= 128:
                    break
                self.start_control()  # its supervisor has given up
            now = self.status()
            if now is None or not is_whole(now):
                first = None
                self._reset(now, time.monotonic() - began_s)
            elif first is None or now.epoch != first.epoch:
                first, since_s = now, time.monotonic()
            elif time.monotonic() > since_s + STEADY_S and built_meps(now) > built_meps(first):
                return now, since_s
            time.sleep(0.2)
        raise RuntimeError(self.report("the run is not whole again"))

    def _reset(self, status: Status | None, after_s: float) -> None:
        """Reset lost units as an operator would, whose patience is shorter than the pauses of the
        run control."""
        for unit in status.units if status and after_s > RESET_S else ():
            if unit.standing in ("lost", "absent"):
                with suppress(MeasureError):
                    self.request("reset", unit=unit.unit)

    def end(self) -> None:
        """Stop the run in order and end it."""
        self.request("stop")
        self.request("exit")
        if code := self.control.wait(MOST_S):
            raise RuntimeError(self.report(f"the run control has ended with {code}"))

    def left_behind(self) -> list[str]:
        """Return sentences on files that an ended run has left outside its folder."""
        left = [str(path) for path in self._pages()]
        places = (self.folder.parent / each for each in ("tmp", "daqloom"))
        left += [str(path) for place in places for path in place.iterdir()]
        return [f"left behind: {', '.join(left)}"] if left else []

    def report(self, sentence: str) -> str:
        """Return a sentence with the last lines of the log and of the units."""
        logs = (path for unit in range(self.units) if (path := self.log(unit)).exists())
        units = [f"{path.name}: {line}" for path in logs for line in last_lines(path, 2)]
        return "\n".join([sentence, *self.lines[-40:], *units])

    def log(self, unit: int) -> Path:
        return self.folder / f"unit-{unit}.log"

    # ---- units -------------------------------------------------------------------------------

    def processes(self) -> dict[int, int]:
        """Return the processes of units, by unit, as the run control has stored them."""
        rows = json.loads((self.folder / "state.json").read_bytes())["processes"]
        found = {row["units"][0]: row["pid"] for row in rows}
        return {unit: pid for unit, pid in found.items() if Path(f"/proc/{pid}").exists()}

    def _stored_processes(self) -> Iterable[int]:
        with suppress(OSError, ValueError, KeyError):
            return self.processes().values()
        return ()

    def kill(self, units: Iterable[int]) -> None:
        known = self.processes()
        for unit in units:
            send(known.get(unit, 0), signal.SIGKILL)

    @contextmanager
    def pause(self, pids: Iterable[int]) -> Iterator[None]:
        """Let processes stand still meanwhile."""
        held = list(pids)
        for pid in held:
            send(pid, signal.SIGSTOP)
        yield
        for pid in held:
            send(pid, signal.SIGCONT)

    def inside(self, unit: int) -> tuple[str, ...]:
        """Return the beginning of a command that runs in the namespace of a unit."""
        return self.network.hosts[unit].enter if self.network else ()

    def _pages(self) -> list[Path]:
        """Return the folder of the counters of units, until the run has ended."""
        with suppress(OSError, ValueError):
            return list(Path("/dev/shm").glob(f"daqloom-run-*-{self.name}"))
        return []

    @property
    def name(self) -> str:
        """Name of the run, part of the names of its buffers."""
        return str(json.loads((self.folder / "run.json").read_bytes())["run"])

    # ---- hooks -------------------------------------------------------------------------------

    def _write_hooks(self) -> None:
        program = self.hooks / "hook.sh"
        program.write_text(HOOK)
        program.chmod(0o755)
        tables = [
            f'[[hooks]]\nname = "{when}-{what}"\ntransition = "{what}"\nwhen = "{when}"\n'
            f'command = ["./hook.sh"]\ntimeout = "{HOOK_TIMEOUT_S:g} s"\n'
            + ('on_failure = "block"\n' if (when, what) == ("before", "start") else "")
            for when, what in HOOKS
        ]
        (self.hooks / "hooks.toml").write_text("\n".join(tables))

    @contextmanager
    def broken_hook(self, when: str, transition: str, how: str) -> Iterator[None]:
        """Let a hook fail ("fails") or hang ("hangs") meanwhile."""
        mark = self.hooks / f"{when}-{transition}"
        mark.write_text(how)
        yield
        mark.unlink()


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may have ended, and leads a session of its own."""
    if pid > 0:
        with suppress(ProcessLookupError):
            os.killpg(pid, number)


def built_meps(status: Status) -> int:
    """Return the number of MEPs that all units have built, complete ones."""
    return sum(int(unit.counters.get("meps_built", 0)) for unit in status.units)


def is_whole(status: Status) -> bool:
    return status.phase is Phase.RUNNING and all(unit.member for unit in status.units)


def is_entry(line: str, phase: str) -> bool:
    """Return whether a line of the log is the entry of a phase."""
    words = line.split(maxsplit=2)
    return len(words) == 3 and words[1] == "s" and words[2].split(":")[0] == phase


def last_lines(path: Path, count: int) -> list[str]:
    return path.read_text(errors="replace").splitlines()[-count:]
