"""All units are lost at once, or out of sight: nothing is recorded twice, nothing unaccounted for.

By the program that does it for longer, benchmarks/event_building_soak.py --rounds 10.
"""

import json
import subprocess
import sys

import pytest

from support.namespaces import can_make_networks
from support.repository import ROOT

SOAK = ROOT / "benchmarks" / "event_building_soak.py"


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
