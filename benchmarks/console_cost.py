"""Cost of the console with 324 units of 20 counters at one frame a second: processor time of its
server, frames per second of its page, and the page's memory over the frames of a day.

A run control without units answers with counters that rise. Prints one JSON object; progress goes
to standard error.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from daqloom.control.calls.registry import publish  # noqa: E402
from daqloom.control.calls.service import Service  # noqa: E402
from daqloom.machine.addresses import join_address  # noqa: E402
from support.browser import opened  # noqa: E402
from support.consoles import served, status, unit  # noqa: E402

UNITS, COUNTERS, VIEWERS = 324, 20, 3
SECONDS = 30
DAY = 86_400
RATES = ("event_rate_hz", "throughput_bps", "wait_source", "wait_peer", "wait_barrier")
RATES += ("wait_consumer", "lost_hz", "source_fill", "output_fill", "latency_p50_s")
MIB = 1 << 20
FRAMES = """(seconds) => new Promise((done) => {
    let count = 0;
    const began = performance.now();
    const next = () => {
        count += 1;
        const passed = (performance.now() - began) / 1000;
        passed < seconds ? requestAnimationFrame(next) : done(count / passed);
    };
    requestAnimationFrame(next);
})"""
DRAW = """async ([frame, count]) => {
    const { draw } = await import("/static/run.js");
    for (let i = 0; i < count; i += 1) {
        const more = Math.random();
        frame.total.at += 1;
        frame.total.event_rate_hz = more;
        for (const each of frame.units) each.event_rate_hz = more;
        draw(frame);
        if (i % 50 === 0) await new Promise(requestAnimationFrame);
    }
}"""


class Rising:
    """Run control without units, whose counters rise with time."""

    def __init__(self, units: int) -> None:
        self._units, self._began_s = units, time.monotonic()

    def steer(self, _: bytes) -> bytes:
        """See `Steerable`."""
        time_s = time.monotonic() - self._began_s
        counters = {f"counter_{n}": round((n + 1) * 1e5 * time_s) for n in range(COUNTERS)}
        rates = {name: 0.1 + time_s % 1 / (1 + n) for n, name in enumerate(RATES)}
        units = tuple(
            unit(n, counters, rates=rates, host="host", pid=1) for n in range(self._units)
        )
        return status(time_s, units, rates=rates).encode()


@contextmanager
def run_control() -> Any:
    """Serve `Rising` in another thread, published for this user."""
    steering, loop = secrets.token_bytes(16), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    refused: Counter[str] = Counter()
    service = Service(Rising(UNITS), steering=steering, certificates=None, refused=refused)
    port = asyncio.run_coroutine_threadsafe(service.listen("127.0.0.1", 0), loop).result()
    with publish(join_address("127.0.0.1", port), steering):
        yield
    asyncio.run_coroutine_threadsafe(service.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def count(stream: Any, counts: list[int], place: int) -> None:
    """Count the frames of a viewer that have all units, until the end of the connection."""
    with suppress(OSError, ValueError, AttributeError):  # of a connection closed meanwhile
        for line in stream:
            counts[place] += line.count(b'"unit":') == UNITS


def cpu_s(process: int) -> float:
    """Processor time of a process (s)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure, and print the report."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        runtime = Path(folder, "run")
        runtime.mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(runtime)
        with run_control(), served(runtime=runtime) as console:
            cookie = console.cookie("view")
            streams = [console.ask("/api/run", headers=cookie) for _ in range(VIEWERS)]
            counts = [0] * VIEWERS
            for place, stream in enumerate(streams):
                threading.Thread(target=count, args=(stream, counts, place), daemon=True).start()
            time.sleep(3)
            began_s, before_s, frames = time.monotonic(), cpu_s(console.pid), counts[0]
            time.sleep(SECONDS)
            frames = counts[0] - frames
            share = (cpu_s(console.pid) - before_s) / (time.monotonic() - began_s)
            print(f"server: {share:.1%} of a core", file=sys.stderr)
            with opened(1300, 1000) as page:
                page.goto(f"{console.url}#token={console.tokens['view']}")
                page.locator("body[data-frames]").wait_for()
                frames_hz = page.evaluate(FRAMES, 20)
                print(f"page: {frames_hz:.0f} frames/s", file=sys.stderr)
                frame = {
                    **{
                        "run": "r",
                        "scenario": "s",
                        "phase": "running",
                        "epoch": 1,
                        "failure": "",
                        "pending": "",
                    },
                    **{"can": [], "losses": [], "events": [], "connections": [], "switch": None},
                    "total": {"at": time.time(), "time_s": 1, "members": 8},
                    "units": [
                        {"unit": n, "state": "running", "member": True, "host": "", "pid": 1}
                        for n in range(8)
                    ],
                }
                heap = []
                session = page.context.new_cdp_session(page)
                for _ in range(5):
                    page.evaluate(DRAW, [frame, DAY // 4 if heap else 4000])
                    session.send("HeapProfiler.collectGarbage")
                    heap.append(session.send("Runtime.getHeapUsage")["usedSize"] / MIB)
                    frame["total"]["at"] += DAY // 4
                    print(f"page: {heap[-1]:.1f} MiB", file=sys.stderr)
    report = {
        "benchmark": "console_cost",
        "counts": "server: share of a core; page: frames per second, heap over a day's frames",
        "units": UNITS,
        "counters": COUNTERS,
        "viewers": VIEWERS,
        "frames_of_a_viewer": frames,
        "seconds": SECONDS,
        "server_share": round(share, 4),
        "page_frames_hz": round(frames_hz, 1),
        "page_heap_mib": [round(each, 2) for each in heap],
        "load_before": load,
        "cores": os.cpu_count(),
        "reached": share <= 0.05 and frames_hz >= 30 and heap[-1] < 1.2 * heap[0],
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
