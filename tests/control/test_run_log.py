"""The log of a run names the load of the machine where a unit was late."""

from types import SimpleNamespace

import pytest

from daqloom.control.protocol.states import Phase
from daqloom.control.run_log import log_entry
from daqloom.machine.machine import Machine

SENTENCE = "; load 7.0 on 2 cores: raise measure.fault_timeout on busy machines"


def machine(folder, load: str) -> Machine:
    for path, text in {
        "proc/loadavg": f"{load} 3.00 1.00 9/300 4711",
        "sys/devices/system/cpu/online": "0-1",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return Machine(folder)


@pytest.mark.parametrize(
    ("text", "load", "more"),
    [
        ("unit 3 is lost: silent for 1.0 s", "7.00", SENTENCE),
        ("unit 3 is lost: its data thread is stuck", "7.00", SENTENCE),
        ("unit 3 is lost: no answer to prepare", "7.00", SENTENCE),
        ("unit 3 is lost: silent for 1.0 s", "1.90", ""),
        ("unit 3 is lost: silent for 1.0 s", "nonsense", ""),
        ("unit 3 is lost: its process ended: killed by signal 9", "7.00", ""),
    ],
)
def test_a_unit_that_was_late_on_a_busy_machine(tmp_path, text, load, more):
    loss = {"phase": Phase.HALTING, "members": 2, "lost": 3, "is_trouble": True}
    event = SimpleNamespace(time_s=1.0, text=text, about=None, **loss)
    found = log_entry(event, machine(tmp_path, load))
    assert found.text == text + more
    assert (found.time_s, found.lost, found.members) == (1.0, 3, 2)
