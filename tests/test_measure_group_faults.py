"""All units are lost at once, or out of sight: nothing is recorded twice, nothing unaccounted for.

By the program that does it for longer, benchmarks/event_building_soak.py --rounds 10.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parent.parent / "benchmarks" / "event_building_soak.py"


def can_make_networks() -> bool:
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "nsenter"))):
        return False
    probe = "ip link add name a type veth peer name b"
    return subprocess.run(["unshare", "-n", "sh", "-c", probe], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_make_networks(), reason="network namespaces are for root only")
@pytest.mark.parametrize("transport", ["shm", "tcp", "libfabric:tcp"])
def test_no_event_is_recorded_twice_whatever_befalls_all_units_together(transport: str) -> None:
    command = [sys.executable, str(SOAK), "--rounds", "1", "--transport", transport]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["recorded_twice"] == report["recorded_damage"] == 0
    accounts = report["events_accounted"]
    assert sum(n for fate, n in accounts.items() if fate != "begun") == accounts["begun"]
    # What a killed unit did after its last heartbeat is in the files alone.
    unknown = accounts["not_processed"] + accounts["unfinished"] + accounts["skipped"]
    assert 0 <= report["recorded_events"] - accounts["built"] - accounts["incomplete"] <= unknown
