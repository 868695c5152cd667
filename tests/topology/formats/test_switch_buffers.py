"""Buffers of real switches as tables of a scenario."""

import json
from pathlib import Path
from typing import Any

import pytest

from daqloom.deployment.scenarios import override
from daqloom.scenario import Scenario
from daqloom.topology import TopologyError
from daqloom.topology.formats.switch_buffers import BufferChoice, Buffers, read_buffers
from support.command import invoke

POOLS = {
    "egress_lossy_pool": {"size": "24192256", "type": "egress", "mode": "dynamic"},
    "ingress_lossless_pool": {"size": "32689152", "type": "ingress", "xoff": "2058240"},
}
PROFILES = {
    "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "1792", "dynamic_th": "3"},
    "ingress_lossy_profile": {
        "pool": "ingress_lossless_pool",
        "size": "0",
        "static_th": "32756480",
    },
}
QUEUES = {"Ethernet0,Ethernet4|0-2": {"profile": "egress_lossy_profile"}}

PAGE = """user@tor1> show class-of-service shared-buffer
Ingress:
  Total Buffer     :  12480.00 KB
  Dedicated Buffer :  2912.81 KB
  Shared Buffer    :  9567.19 KB
    Lossy                :  4400.91 KB

  Lossless Headroom Utilization:
  Node Device         Total          Used           Free
  0                   4305.23 KB     0.00 KB        4305.23 KB

Egress:
  Total Buffer     :  12480.00 KB
  Dedicated Buffer :  3744.00 KB
  Shared Buffer    :  8736.00 KB
    Lossless             :  4368.00 KB
    Multicast            :  1659.84 KB
    Lossy                :  2708.16 KB
"""
BRACES = """## Last changed: 2026-01-01
class-of-service {
    shared-buffer {
        ingress {
            buffer-partition lossy {
                percent 85;
                dynamic-threshold 2;
            }
        }
        egress {
            percent 100;
            buffer-partition lossless {
                dynamic-threshold 1;
            }
            buffer-partition lossy {
                percent 31;
                dynamic-threshold 10;
            }
        }
    }
}
"""
LOSSY = "set class-of-service shared-buffer egress buffer-partition lossy"
SET = f"{LOSSY} percent 31\n{LOSSY} dynamic-threshold 10\nset system host-name tor1\n"


def sonic(folder: Path, **tables: Any) -> Path:
    given = {"BUFFER_POOL": POOLS, "BUFFER_PROFILE": PROFILES, "BUFFER_QUEUE": QUEUES}
    path = folder / "config_db.json"
    path.write_text(json.dumps(given | tables))
    return path


def junos(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"junos{place}.txt" for place in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def found(paths: list[Path], **choice: Any) -> Buffers:
    return read_buffers(paths, BufferChoice(**({"ports": 33, "cell_bytes": 0} | choice)))


def refused(paths: list[Path], **choice: Any) -> str:
    with pytest.raises(TopologyError) as error:
        read_buffers(paths, BufferChoice(**choice))
    return str(error.value)


def test_a_queue_of_sonic_takes_from_its_egress_pool_with_a_power_of_two(tmp_path: Path) -> None:
    table = found([sonic(tmp_path)]).table()
    # 33 ports reserve 1792 B each: 59 136 B besides the pool; dynamic_th 3 is alpha 2^3.
    assert table["buffer"] == f"{24_192_256 + 33 * 1792} B" == "24251392 B"
    assert (table["dedicated"], table["alpha"], table["ports"]) == ("59136 B", 8.0, 33)
    # The table is one that a scenario takes.
    changes = {f"network.switch.tor.{key}": value for key, value in table.items()}
    switch = override(Scenario(), changes).network.switch.tor
    assert switch.shared == 24_192_256


def test_ports_of_the_front_panel_and_rows_are_counted(tmp_path: Path) -> None:
    ports = {f"Ethernet{4 * n}": {"lanes": str(n)} for n in range(32)}
    ports |= {"Ethernet-Rec0": {"role": "Rec"}}
    assert found([sonic(tmp_path, PORT=ports)], ports=None).ports == 32
    assert found([sonic(tmp_path, PORT=ports)], ports=5).ports == 5
    queues = QUEUES | {"Ethernet0|5": {"profile": "other"}, "odd": {"profile": "x"}}
    path = sonic(tmp_path, BUFFER_QUEUE=queues, BUFFER_PG={"Ethernet0|0": {}})
    counts = found([path]).counts["config_db.json"]
    # A queue, its profile and pool; the other queue, profile, pool and a priority group.
    assert counts == {"used": 3, "ignored": 4, "malformed": 1}


@pytest.mark.parametrize(("power", "alpha"), [("-8", 1 / 256), ("-1", 0.5), ("0", 1), ("7", 128)])
def test_alpha_is_two_to_the_dynamic_threshold(tmp_path: Path, power: str, alpha: float) -> None:
    row = {"pool": "[BUFFER_POOL|egress_lossy_pool]", "size": "0", "dynamic_th": power}
    queues = {"Ethernet0|0": {"profile": "[BUFFER_PROFILE|q]"}}
    path = sonic(tmp_path, BUFFER_PROFILE={"q": row}, BUFFER_QUEUE=queues)
    assert found([path]).alpha == alpha


def test_the_threshold_of_a_queue_is_static_its_schedulers_or_given(tmp_path: Path) -> None:
    row = {"pool": "egress_lossy_pool", "size": "1000", "static_th": "200000"}
    buffers = found([sonic(tmp_path, BUFFER_PROFILE={"egress_lossy_profile": row})])
    assert (buffers.limit_bytes, buffers.alpha) == (201_000, 1e6)
    own = f"{SET}set class-of-service schedulers be buffer-dynamic-threshold 5\n"
    files = junos(tmp_path, PAGE, own)
    assert "one alpha, as a scheduler has" in refused(files, ports=1, cell_bytes=0)
    assert found(files, alpha=2.0).alpha == 2
    [page] = junos(tmp_path, PAGE)
    assert found([page], alpha=0.5).alpha == 0.5
    # 6 of Egress, the two headings; the others are the command, blanks and Ingress.
    assert found([page], alpha=1.0).counts["junos0.txt"] == {"used": 8, "ignored": 10}


@pytest.mark.parametrize("configuration", [BRACES, SET])
def test_junos_gives_sizes_on_a_page_and_the_threshold_in_its_configuration(
    tmp_path, configuration
):
    for order in (1, -1):
        buffers = found(junos(tmp_path, PAGE, configuration)[::order])
        assert buffers.shared_bytes == round(2708.16 * 1024)
        assert buffers.reserved_bytes == 3744 * 1024
        assert buffers.alpha == 8  # dynamic-threshold 10: 2^(10 - 7)


def test_missing_options_are_requested_in_one_sentence(tmp_path: Path) -> None:
    said = refused([sonic(tmp_path)])
    assert "lacks the number of ports (--ports 33) and the size of a cell" in said
    said = refused(junos(tmp_path, PAGE))
    assert "lacks alpha" in said
    assert "--ports" in said
    assert "--cell-size" in said
    text = "give the output of `show class-of-service shared-buffer` too"
    assert text in refused(junos(tmp_path, BRACES))


PROFILE, POOL = "egress_lossy_profile", "egress_lossy_pool"
ODD_SONIC: list[tuple[str, Any, str]] = [
    ("BUFFER_POOL", None, "has no table BUFFER_POOL"),
    ("BUFFER_QUEUE", {"Ethernet0|3": {"profile": "p"}}, "--queue may be 3"),
    ("BUFFER_QUEUE", {}, "no profile for queue 0; --queue may be none"),
    ("BUFFER_QUEUE", {"Ethernet0|0": {"profile": "egress_losy_profile"}}, "did you mean"),
    ("BUFFER_QUEUE", {"Ethernet0|x": {"profile": "p"}}, "were not understood"),
    ("BUFFER_QUEUE", {"a|0": {"profile": "p"}, "b|0": {"profile": "q"}}, "profile p at a|0 and q"),
    ("BUFFER_QUEUE", {"a|0": {"profile": "ingress_lossy_profile"}}, "which is for ingress"),
    ("BUFFER_POOL", {POOL: {"type": "egress"}}, "has no size"),
    ("BUFFER_PROFILE", {PROFILE: {"pool": POOL}}, "has neither dynamic_th nor static_th"),
    (
        "BUFFER_PROFILE",
        {PROFILE: {"pool": POOL, "dynamic_th": "9"}},
        "dynamic_th = 9; expected -8 to 7",
    ),
    (
        "BUFFER_PROFILE",
        {PROFILE: {"pool": POOL, "size": "-1"}},
        "size = -1; expected a whole number",
    ),
]


@pytest.mark.parametrize(("table", "rows", "said"), ODD_SONIC)
def test_an_odd_file_of_sonic_is_refused(tmp_path: Path, table: str, rows: Any, said: str) -> None:
    assert said in refused([sonic(tmp_path, **{table: rows})], ports=1, cell_bytes=0)


ODD_JUNOS = [
    ("root:x:0:0\nbin:x:1:1\n", "were not understood, the first is line 1"),
    ("", "is empty; known are"),
    ("{ not json", "begins like JSON and is none"),
    (PAGE.replace("KB", "of it"), "were not understood"),
    (PAGE + PAGE.replace("2708", "2709"), "give the page of one switch"),
    (PAGE.replace("    Lossy  ", "    Other  "), "has no Lossy of Egress"),
    (BRACES.replace("    shared-buffer", "    inactive: shared-buffer"), "an active statement"),
    (f"{LOSSY} dynamic-threshold 11\n", "dynamic-threshold 0 to 10"),
]


@pytest.mark.parametrize(("text", "said"), ODD_JUNOS)
def test_an_odd_file_of_junos_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(junos(tmp_path, text), ports=1, cell_bytes=0, alpha=1.0)


def test_the_command_prints_a_table_and_its_counts(tmp_path: Path) -> None:
    path = str(sonic(tmp_path))
    options = ["--ports", "33", "--cell-size", "256 B", "--switch", "leaf"]
    done = invoke("topology", "buffers", path, *options)
    assert done.exit_code == 0, done.output
    assert "alpha = 2^3\n[network.switch.leaf]\nmodel = " in done.stdout
    assert 'cell_size = "256 B"' in done.stdout
    assert "config_db.json: 3 rows used, 2 ignored, 0 malformed" in done.stderr
    assert invoke("topology", "buffers", path).exit_code == 2
